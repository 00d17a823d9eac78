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
    words: str
    """Words by which the language is recognised. Languages that are not here have none of them."""
    spaced: bool = True
    """Whether spaces are between words."""


LANGUAGES = [
    Language(
        name="English",
        answer=r"answers?",
        verb=r"is|are|equals",
        states=r"was|were|equal|be|becomes?|makes?|gives?|giving|totals?|leaves?|leaving|costs?|yields?|gets?|remains?",
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
        words=r"the|of|and|she|he|they|we|it|has|have|had|are|was|were|will|this|that|these|there|with|from|for|her|his"
        r"|their|each|how|which|thus|hence|therefore|can|would|must|needs?|gives|giving|total|value|you|your",
    ),
    Language(
        name="French",
        answer=r"r[eé]ponses?",
        verb=r"est|sont|vaut|valent|égale",
        states=r"donne|coûte|reste|était|fait|mesure|obtient|font",
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
        words=r"les|des|du|une|donc|nous|avec|dans|est|sont|elle|aux|réponse|reste|cette|ces|vaut",
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
        words=r"der|das|und|ist|eine|einen|wir|beträgt|lautet|insgesamt|daher|somit|sind|kostet|bleiben|haben|antwort|sie",
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
        words=r"el|los|las|es|son|hay|entonces|tiene|queda|quedan|cuesta|respuesta|distancia|total de",
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
        words=r"ответ|это|равно|равен|равна|итак|получаем|осталось|расстояние|стоит|составляет|он|она|они|значит|всего|что"
        r"|поэтому|следовательно",
    ),
    Language(
        name="Chinese",
        answer=r"答案|(?<!\w)答",
        verb=r"应该是|應該是|应为|應為|是|为|為|等于|等於|即|选择|选|選擇|選",
        states=r"得到|得|剩下|还剩|還剩|共有|有|需要|花费|花了|共",
        ending="",
        final=r"最终|最終|最后|最後",
        conclusion=r"所以|因此|故|于是|於是|综上|綜上|总共|總共|一共",
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
        words="",
        spaced=False,
    ),
    Language(
        name="Japanese",
        answer=r"答え|解答|正解|回答",
        verb=r"は|が",
        states=r"を|で|に",
        ending=r"です|である|であります|だ|となります|になります|となる|になる|でした",
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
        words="",
        spaced=False,
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
        words="",
        spaced=False,
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
