r"""The languages in which answers are read, a row each: their words for an answer, and those that make it another one.

Each column is an alternation of a regular expression, for text in `one_notation`. In a language that is not here, an
answer counts only where a mark shows it: a box, `####`, JSON, a tag.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Language:
    """The words of one language."""

    name: str
    answer: str
    """Nouns for an answer."""
    verb: str
    """Verbs and particles between "the answer" and its value."""
    states: str
    """Further verbs between a subject and its value."""
    ending: str
    """What may end a statement after its value."""
    final: str
    """Before `answer`: the last word, which replaces a box."""
    conclusion: str
    """Words before a sentence that concludes."""
    about: str
    """Before a number: an estimate."""
    no: str
    """Before a number: it is none."""
    bound: str
    """Before a number: a bound of it, or a part or a multiple."""
    bound_after: str
    """After a number: a bound of it, an estimate, or that it is none."""
    either: str
    """Between two values: "or"."""
    both: str
    """Between two values: "and"."""
    unsure: str
    """Anywhere in a sentence: it holds on a condition, or perhaps."""
    option: str
    """Nouns and verbs before an option's letter."""
    right: str
    """Beside an option: it is the answer."""
    question: str
    """At the start of a line: another question."""
    frames: str
    """Words that may stand anywhere around a value, also between a verb and it: they change none. With spaces between
    them, and not patterns."""
    subjects: str
    """Further words that change no value, but not between a verb and it: pronouns, prepositions, names of values."""
    names: str = ""
    """Words that name a value, in front of a verb, of nouns one: "the inverse is"."""
    reasoning: str = ""
    """Words of a clause that says how an answer was found, in front of "the answer is": "by symmetry,"."""
    counters: str = ""
    """Words between a number and what it counts."""
    spaced: bool = True
    """Whether spaces are between words."""


LANGUAGES = [
    Language(
        name="English",
        answer=r"answers?|ans",
        verb=r"is|are|equals",
        states=r"was|were|equal|be|becomes?|makes?|gives?|giving|totals?|leaves?|leaving|costs?|yields?|gets?|remains?"
        r"|ha(?:s|ve|d)|takes?|needs?|owes?|uses?|earns?|saves?|spends?|pays?|sells?|buys?|eats?|reads?"
        r"|amounts? to|comes? (?:out )?to|works? out to|evaluates? to|simplif(?:ies|y) to",
        ending="",
        final="final",
        conclusion=r"so|thus|hence|therefore|then|consequently|in total|altogether|that means|this means|which means",
        about=r"about|around|approximately|approx\.?|roughly|circa",
        no=r"\w{1,9}n't|can\s?not|not|never|neither|nor|no longer|without|anything but|everything but|all but",
        bound=r"at (?:the )?(?:least|most|minimum|maximum)|up to|(?:more|less|fewer|greater|larger|smaller|higher|lower"
        r"|other|rather) than|under|over|above|below|beyond|nearly|almost|exceed(?:s|ing)?|between|within|minimum"
        r"|maximum",
        bound_after=r"or (?:so|more|less|fewer|above|over|up)|and (?:up|above|over|more)|at (?:least|most)|wrong"
        r"|incorrect|false|approximately|roughly|ish",
        either="or",
        both="and",
        unsure=r"if|unless|suppose|assuming|maybe|perhaps|possibly|might|may be|could|would be if|guess|not sure"
        r"|whether|doubt|otherwise|instead of|except|wrong|incorrect|false|impossible|unknown",
        option=r"option|choice|letter",
        right=r"correct|right|best",
        question=r"Q|Question|Problem|Exercise|User|Human|Student",
        frames="a an the with at left exactly equal equals to just simply precisely only now then also thus so of for"
        " by value number amount answer answers result is are be been given found computed calculated as currently"
        " in all it we he she they get gets have has which that total expressed indeed clearly finally"
        " overall therefore hence consequently altogether together see profit distance height length area"
        " volume speed weight cost price age width depth time",
        subjects="who whom whose where such satisfy satisfies person this these those its you i my his her him them"
        " their our us your there here one's on from into onto per each every both during after before within"
        " through across would should will can did does do being am had having because since remaining remain"
        " remains still how many much what whole percent loss balance money change quantity final correct"
        " right steps required desired requested needed asked solution solutions question problem exercise"
        " expression equation formula unit units simplified simplest simplify simplifying evaluate mixed obtain obtains"
        " find finds know conclude compute calculate determine using use substituting means let's hope helps"
        " qed done summary conclusion step work solve solved need needs must today everyone obtained making"
        " makes comes out holds yes well respectively rounded round nearest thousandths hundredth hundredths"
        " tenth place places boxed box it's that's here's there's we're he'll she'll they'll i'll we'll able"
        " certain confident directly times take takes owe owes complete completes",
        names="between measure average mean median mode odds difference product quotient ratio perimeter"
        " circumference radius diameter probability percentage variable integer term limit slope intercept"
        " point set range domain coefficient digit degree fraction decimal root inverse multiplicative modulus"
        " numerator denominator"
        " sequence series values factors matrix matrices minimum maximum constraint absolute complex equivalent"
        " representation reciprocal exponent base logarithm remainder divisor multiple zeros trailing prime"
        " element vertices vector norm determinant rank hypotenuse side rate density frequency mass force power"
        " voltage common greatest least lowest highest smallest largest possible positive real combined based"
        " analysis way outcome combinations permutations arrangements paths routes handshakes item object thing"
        " words sales calories arithmetic resulting quadratic linear passes derivative antiderivative integral"
        " gradient center centre centroid focus around direction defined selected randomly chosen prior tallest"
        " oldest youngest fastest cheapest shortest longest biggest earlier larger smaller greater longer shorter"
        " taller older younger follows",
        reasoning="in short summary brief other words conclusion mind to summarize conclude sum up put simply with by"
        " from using after upon based on according following as a an the our my we this these that those it"
        " all above given previous earlier calculation calculations computation computations work steps"
        " reasoning analysis result results formula equation equations expression theorem symmetry"
        " definition identity substitution inspection math algebra and of both sides simplifying adding"
        " subtracting multiplying dividing combining solving substituting plugging evaluating computing"
        " calculating factoring expanding rearranging counting doing putting everything together can be seen"
        " shown verified checked see show verify check follows",
    ),
    Language(
        name="French",
        answer=r"r[eé]ponses?",
        verb=r"est|sont|vaut|valent|égale",
        states=r"donne|coûte|reste|était|fait|mesure|obtient|font|il y a",
        ending="",
        final=r"(?:finale?|définitive)",
        conclusion=r"donc|ainsi|par conséquent|alors|finalement|d'où|au total",
        about=r"environ|approximativement|à peu près|à peu pres|autour de|près de|quelque",
        no=r"pas|non|jamais|ni|sans|aucune?|plus(?= \d)",
        bound=r"au (?:moins|plus|maximum|minimum)|plus (?:de|que)|moins (?:de|que)|jusqu'à|presque|supérieure? à"
        r"|inférieure? à|entre|la moitié de|le double de",
        bound_after=r"ou (?:plus|moins)|au (?:moins|plus)|environ|faux|incorrecte?",
        either="ou",
        both="et",
        unsure=r"si|sauf|suppos\w+|peut-être|pourrait|soit|ne|faux|incorrecte?|n'\w+|doute",
        option=r"option|choix|lettre|proposition",
        right=r"correcte?|bonne|juste|exacte?",
        question=r"Question|Problème|Exercice|Utilisateur",
        frames="le la les l un une des du de d exactement donc ainsi alors égal égale à est en tout total c"
        " valeur ce que qui finalement conséquent",
        subjects="nous on il elle ils elles cette ces son sa ses leur leurs pour avec dans par sur au aux et distance"
        " somme aire longueur nombre résultat solution vitesse prix coût temps durée bonne juste correcte finale"
        " obtient trouve",
    ),
    Language(
        name="German",
        answer=r"antwort(?:en)?",
        verb=r"ist|sind|lautet|lauten|beträgt",
        states=r"ergibt|ergeben|kostet|kosten|bleiben|bleibt|war|waren|betragen|wiegt|macht",
        ending="",
        final=r"endgültige|finale|letzte",
        conclusion=r"also|daher|somit|folglich|deshalb|insgesamt|dann|damit",
        about=r"ungefähr|etwa|circa|zirka|ca\.?|rund|annähernd|in etwa",
        no=r"nicht|keine?[nrs]?|nie|niemals|weder|ohne",
        bound=r"mindestens|höchstens|(?:mehr|weniger|größer|kleiner) als|unter|über|bis zu|maximal|minimal|fast|beinahe"
        r"|knapp|zwischen|die Hälfte von|doppelt",
        bound_after=r"oder (?:mehr|weniger)|nicht|ungefähr|falsch|höchstens|mindestens",
        either="oder",
        both="und",
        unsure=r"wenn|falls|sofern|vielleicht|möglicherweise|könnte|entweder|angenommen|falsch|außer|ob",
        option=r"option|möglichkeit|buchstabe|auswahl",
        right=r"richtige?|korrekte?",
        question=r"Frage|Aufgabe|Benutzer|Nutzer",
        frames="der die das den dem des ein eine einen genau gleich entfernung"
        " strecke summe fläche länge preis ergebnis lösung anzahl also daher somit ist insgesamt wert zahl"
        " es damit sich schließlich",
        subjects="wir sie er ihr ihre sein seine dies diese dieser für mit im in am auf von zu zum zur und nach pro"
        " jede jeder geschwindigkeit kosten zeit dauer richtige korrekte endgültige",
    ),
    Language(
        name="Spanish",
        answer=r"respuestas?",
        verb=r"es|son|vale|valen|equivale a",
        states=r"da|cuesta|cuestan|queda|quedan|era|eran|mide|pesa|suman?|resulta|obtenemos|tiene|tienen|hay",
        ending="",
        final=r"final",
        conclusion=r"entonces|por (?:lo )?tanto|así|así que|luego|en total|por consiguiente",
        about=r"aproximadamente|alrededor de|cerca de|unos|unas|más o menos",
        no=r"no|nunca|jamás|ni|sin|tampoco",
        bound=r"al menos|por lo menos|como (?:mínimo|máximo)|a lo sumo|(?:más|menos) (?:de|que)|mayor (?:de|que)"
        r"|menor (?:de|que)|hasta|casi|entre|la mitad de|el doble de",
        bound_after=r"o (?:más|menos)|al menos|como (?:mínimo|máximo)|aproximadamente|incorrect[oa]|fals[oa]",
        either="[ou]",
        both="[ye]",
        unsure=r"si|salvo|excepto|quizás?|tal vez|podría|suponiendo|incorrect[oa]|fals[oa]|a menos que",
        option=r"opci[oó]n|letra|alternativa|inciso",
        right=r"correct[oa]|acertad[oa]",
        question=r"Pregunta|Problema|Ejercicio|Usuario",
        frames="el la los las un una unos de del exactamente igual a es en total así que por tanto lo valor"
        " finalmente consiguiente",
        subjects="se su sus este esta estos estas para con y él ella ellos nosotros distancia suma área longitud número"
        " cantidad resultado solución velocidad precio costo coste tiempo correcta correcto final cada",
    ),
    Language(
        name="Portuguese",
        answer=r"respostas?",
        verb=r"é|são|vale|equivale a",
        states=r"dá|custa|custam|resta|restam|era|eram|mede|pesa|resulta|obtemos|tem|têm|há",
        ending="",
        final=r"final",
        conclusion=r"então|portanto|assim|logo|por isso|no total|ao todo",
        about=r"aproximadamente|cerca de|por volta de|mais ou menos|em torno de",
        no=r"não|nunca|jamais|nem|sem|tampouco",
        bound=r"pelo menos|no (?:mínimo|máximo)|(?:mais|menos) (?:de|do que|que)|maior (?:do )?que|menor (?:do )?que"
        r"|até|quase|entre|metade de|o dobro de",
        bound_after=r"ou (?:mais|menos)|pelo menos|no (?:mínimo|máximo)|aproximadamente|incorret[oa]|fals[oa]",
        either="ou",
        both="e",
        unsure=r"se|salvo|exceto|talvez|poderia|supondo|incorret[oa]|fals[oa]|a menos que",
        option=r"opção|letra|alternativa",
        right=r"corret[oa]|cert[oa]",
        question=r"Pergunta|Questão|Problema|Exercício|Usuário",
        frames="o a os as um uma de do da exatamente igual é em total ao todo assim que portanto valor finalmente isso",
        subjects="ele ela eles elas nós seu sua este esta para com por e distância soma área comprimento número"
        " quantidade resultado solução velocidade preço custo tempo correta correto final cada",
    ),
    Language(
        name="Italian",
        answer=r"rispost[ae]|soluzione",
        verb=r"è|sono|vale|valgono|equivale a",
        states=r"dà|costa|costano|resta|restano|rimangono|era|erano|misura|pesa|risulta|otteniamo|ha|hanno|fa|ci sono",
        ending="",
        final=r"finale|definitiva",
        conclusion=r"quindi|dunque|perciò|pertanto|allora|in totale|in tutto",
        about=r"circa|approssimativamente|all'incirca|più o meno|intorno a",
        no=r"non|mai|né|senza|neanche|nemmeno",
        bound=r"almeno|al (?:massimo|minimo|più)|(?:più|meno) (?:di|che)|maggiore (?:di|che)|minore (?:di|che)|fino a"
        r"|quasi|tra|fra|la metà di|il doppio di",
        bound_after=r"o (?:più|meno)|almeno|al (?:massimo|minimo)|circa|errat[oa]|sbagliat[oa]|fals[oa]",
        either="o",
        both="e",
        unsure=r"se|salvo|eccetto|forse|potrebbe|supponendo|errat[oa]|sbagliat[oa]|fals[oa]|a meno che",
        option=r"opzione|lettera|alternativa",
        right=r"corrett[oa]|giust[oa]|esatt[oa]",
        question=r"Domanda|Problema|Esercizio|Utente",
        frames="il lo la i gli le un uno una di del"
        " della esattamente uguale a è in totale tutto così che quindi valore infine",
        subjects="lui lei loro noi suo sua questo questa per con da e distanza somma area lunghezza numero quantità"
        " risultato soluzione velocità prezzo costo tempo corretta corretto finale definitiva ogni",
    ),
    Language(
        name="Russian",
        answer=r"ответ(?:ом)?",
        verb=r"равен|равна|равно|равны|это|является|будет|составляет|-|—|–",
        states=r"стоит|осталось|остаётся|остается|получаем|получается|весит|был|была|было|были|даёт|дает|станет",
        ending="",
        final=r"окончательный|итоговый|конечный",
        conclusion=r"итак|поэтому|следовательно|значит|таким образом|тогда|всего|итого|отсюда",
        about=r"примерно|приблизительно|около|порядка|почти",
        no=r"не|ни|нет|без|никогда",
        bound=r"больше|меньше|более|менее|не (?:менее|более|меньше|больше)|минимум|максимум|до|свыше|между|половина"
        r"|вдвое|как минимум|как максимум",
        bound_after=r"или (?:более|менее|больше|меньше)|примерно|неверно|неправильно|не",
        either="или",
        both="и",
        unsure=r"если|возможно|может быть|либо|кроме|неверно|неправильно|предположим|вероятно",
        option=r"вариант|выбор|буква",
        right=r"правильн\w+|верн\w+",
        question=r"Вопрос|Задача|Пользователь",
        frames="в итоге это ровно точно равен равна равно равняется так итого всего значение число таким образом",
        subjects="мы он она они его её их на за с по и для у из этого этой этот эта расстояние сумма площадь длина"
        " количество результат решение скорость цена стоимость время правильный верный окончательный искомое"
        " искомый искомая каждый",
    ),
    Language(
        name="Chinese",
        answer=r"答案|(?<!\w)答",
        verb=r"应该是|應該是|应为|應為|是|为|為|等于|等於|即|选择|选|選擇|選",
        states=r"得到|得|剩下|还剩|還剩|共有|有|需要|花费|花了|共",
        ending="",
        final=r"最终|最終|最后|最後",
        conclusion=r"所以|因此|故|于是|於是|综上(?:所述)?|綜上(?:所述)?|总共|總共|一共",
        about=r"大约是?|大約是?|约为?|約為?|大概是?|差不多",
        no=r"不是|不等于|不等於|并非|並非|不为|不為|没有|沒有|非|不",
        bound=r"至少|最少|至多|最多|超过|超過|不到|不足|大于|大於|小于|小於|多于|多於|少于|少於|负|負|接近|将近",
        bound_after=r"以上|以下|以内|以內|左右|上下|多|余|餘|倍|分之|半|不对|不對|错误|錯誤",
        either=r"或者?|还是|還是",
        both=r"和|与|與|及",
        unsure=r"如果|若|假如|假设|假設|可能|也许|也許|大概|除非|错误|錯誤|不对|不對|吗|嗎",
        option=r"选项|選項|选择|選擇|选|選",
        right=r"正确的?|正確的?|对的?|對的?",
        question=r"问题|問題|题目|題目|问|問|用户|用戶",
        spaced=False,
        frames="的 是 为 為 等于 等於 共 总共 總共 一共 正好 恰好 结果 結果 值 就是 就 它 这 這",
        subjects="距离 距離 面积 面積 长度 長度 体积 體積 速度 总数 總數 价格 價格 时间 時間 数量"
        " 數量 个数 個數 和 正确 正確 最终 最終 他 她 他们 我们 我們 小明 x y 题目"
        " 解 得",
        counters="个 個 只 隻 本 人 枚 张 張 件 条 條 支 块 塊 次 位 名 辆 輛 朵 棵 颗 顆 道 页 頁 岁 歲",
    ),
    Language(
        name="Japanese",
        answer=r"答え|解答|正解|回答",
        verb=r"は|が",
        states=r"を|で|に",
        ending=r"あります|います|です|である|であります|だ|となります|になります|となる|になる|でした",
        final=r"最終的な|最終",
        conclusion=r"したがって|よって|ゆえに|つまり|だから|合計で?|従って",
        about=r"約|およそ|おおよそ|ほぼ|だいたい",
        no=r"",
        bound=r"少なくとも|最低でも?|最大で?|最小で?|多くても|高々",
        bound_after=r"以上|以下|未満|以内|超|倍|ぐらい|くらい|程度|ほど|前後|では(?:ない|ありません|なく)|じゃない|でない|より|から|まで",
        either=r"または|または、|か|あるいは",
        both=r"と|および|や",
        unsure=r"もし|なら|かもしれ|おそらく|たぶん|ではない|ではありません|じゃない|間違い",
        option=r"選択肢|オプション",
        right=r"正しい|正解",
        question=r"問題|質問|ユーザー|問",
        spaced=False,
        frames="は が の を 求める ちょうど 合計 全部 値 結果 それ これ です",
        subjects="残り 距離 面積 長さ 体積 速さ 速度 個数 数 人数 値段 時間 和 正しい 最終的な",
        counters="個 つ 人 枚 本 匹 冊 台 回 歳 ページ",
    ),
    Language(
        name="Korean",
        answer=r"정답|답변?",
        verb=r"은|는|이|가",
        states=r"를|을|총|모두",
        ending=r"입니다|이다|이에요|예요|이야|이 됩니다|가 됩니다|이 된다|가 된다",
        final=r"최종",
        conclusion=r"따라서|그러므로|그래서|즉|결국|모두",
        about=r"약|대략|거의|대충",
        no=r"",
        bound=r"최소한?|최대|적어도|많아야",
        bound_after=r"이상|이하|미만|초과|이내|정도|쯤|배|[이가]?\s?아[니닙닌]|보다|까지|부터",
        either=r"또는|혹은|이나|나",
        both=r"와|과|그리고|및",
        unsure=r"만약|만일|아마|아니|아닙|아닌|일 수도|혹시|틀[린렸]",
        option=r"선택지|보기|옵션",
        right=r"정답|맞는|올바른|옳은",
        question=r"질문|문제|사용자",
        spaced=False,
        frames="은 는 이 가 의 를 을 정확히 총 모두 합계 값 결과 그 이것",
        subjects="거리 면적 넓이 길이 부피 속도 개수 가격 시간 합 최종 남았습니다 있습니다",
        counters="개 명 마리 권 대 장 회 살 쪽 원",
    ),
]


def words_of(*columns: str, languages: Iterable[Language] = LANGUAGES) -> str:
    """A pattern of the words in these columns, of all languages: whole words where spaces are between them."""
    assert set(columns) <= {field.name for field in fields(Language)}
    spaced, unspaced = [], []
    for language in languages:
        for column in columns:
            if words := getattr(language, column):
                (spaced if language.spaced else unspaced).append(words)
    parts = [rf"(?<![\w'])(?:{'|'.join(spaced)})(?![\w'])"] if spaced else []
    return rf"(?:{'|'.join(parts + unspaced)})"
