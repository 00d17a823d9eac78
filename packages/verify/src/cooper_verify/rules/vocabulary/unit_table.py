# ruff: noqa: E501 - a line of the table is a unit
"""The registry of units: what each measures, its size, and its names and symbols in the languages that are read.

A line of `_TABLE` is `dimension name=size | symbols | names | other names`. Symbols are read as they are written, for
mW is not MW; names in any case, and with an English plural. Those with `+` take the prefixes of the SI. The dimension
is a product of bases with exponents, such as `mass length^2 time^-2`.
"""

import re
import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

_TABLE = """
length metre=1 | +m | +metre +meter | metres meters +metro +metros +metri 米 公尺 メートル 미터 +метр +метра +метров +mètre
length inch=0.0254 | in | inch | inches pouce pouces zoll pulgada pulgadas pollici дюйм дюймов 英寸 インチ 인치
length foot=0.3048 | ft | foot | feet pied pieds fuß piedi фут футов 英尺 フィート 피트
length yard=0.9144 | yd yds | yard | ярд ярдов 码 ヤード 야드
length mile=1609.344 | mi | mile | milla millas meile meilen miglia milhas миля мили миль 英里 マイル 마일
length nautical_mile=1852 | nmi | |
length light_year=9460730472580800 | ly | lightyear |
length angstrom=1/10000000000 | Å | angstrom |
length kilometre=1000 | | | kms 公里 千米 キロメートル 킬로미터
length decimetre=1/10 | | | 分米
length centimetre=1/100 | | | cms 厘米 公分 センチメートル センチ 센티미터
length millimetre=1/1000 | | | 毫米 ミリメートル 밀리미터
length micrometre=1/1000000 | | micron | 微米
length nanometre=1/1000000000 | | | 纳米
mass gram=1 | +g gm gms | +gram +gramme | +gramo +gramos +gramm +grammi 克 グラム 그램 +грамм +грамма +граммов
mass kilogram=1000 | | kilo | kgs 公斤 千克 キログラム 킬로그램
mass milligram=1/1000 | | | 毫克 ミリグラム 밀리그램
mass jin=500 | | | 斤
mass tonne=1000000 | t | tonne | tonnen toneladas tonnellate тонна тонны тонн т 吨 噸 トン 톤
mass ounce=28.349523125 | oz | ounce | унция унций 盎司
mass pound=453.59237 | lb lbs | pound | фунт фунтов 磅 ポンド 파운드
time second=1 | +s sec secs | +second | +seconde +secondes +sekunde +sekunden +segundo +segundos +secondi 秒 초 +секунда +секунды +секунд с
time minute=60 | min mins | minute | minuten minuto minutos minuti минута минуты минут мин 分钟 分鐘 分間 분
time hour=3600 | h hr hrs | hour | heure heures stunde stunden hora horas ora ore час часа часов ч 小时 小時 時間 시간 时 時
time day=86400 | d | day | jour jours tag tage tagen día días dia dias giorno giorni день дня дней 天 日間 일
time week=604800 | wk wks | week | semaine semaines woche wochen semana semanas settimana settimane неделя недели недель 周 週 星期 週間 주일
calendar month=1 | mo | month | mois monat monate mes meses mese mesi месяц месяца месяцев 个月 個月 か月 ヶ月 개월
calendar year=12 | yr yrs | year | année années jahr jahre jahren año años ano anos anno anni год года лет 年 년
calendar decade=120 | | decade |
calendar century=1200 | | | century centuries
length^3 litre=1/1000 | +L +l | +litre +liter | +litro +litros +litri 升 公升 リットル 리터 +литр +литра +литров
length^3 millilitre=1/1000000 | | | cc 毫升 ミリリットル 밀리리터
household gallon=1 | gal | gallon | галлон галлонов 加仑
household quart=1/4 | qt qts | quart |
household pint=1/8 | pt pts | pint |
household cup=1/16 | | cup | чашка чашки чашек
household teaspoon=1/768 | tsp | teaspoon |
household tablespoon=1/256 | tbsp | tablespoon |
mass length^2 time^-3 watt=1000 | +W | +watt | 瓦 ワット 와트 +ватт
mass length^2 time^-3 kilowatt=1000000 | | | 千瓦
mass length^2 time^-2 joule=1000 | +J | +joule | 焦耳 焦 ジュール 줄 +джоуль +джоулей
mass length^2 time^-2 watthour=3600000 | +Wh | +watthour | 千瓦时=1000
mass length^2 time^-2 calorie=4184 | +cal | +calorie | калория калорий
mass length^2 time^-2 electronvolt=1.602176634/10000000000000000 | +eV | +electronvolt |
mass length time^-2 newton=1000 | +N | +newton | 牛顿 牛 ニュートン 뉴턴 +ньютон +ньютонов
mass length^-1 time^-2 pascal=1000 | +Pa | +pascal | 帕 帕斯卡 パスカル +паскаль
mass length^-1 time^-2 atmosphere=101325000 | atm | atmosphere |
mass length^-1 time^-2 bar=100000000 | +bar | |
mass length^-1 time^-2 mmhg=133322.387415 | mmHg | |
time^-1 hertz=1 | +Hz | +hertz | 赫兹 ヘルツ 헤르츠 герц Гц
mass length^2 time^-3 current^-1 volt=1000 | +V | +volt | 伏特 伏 ボルト 볼트 вольт В
current ampere=1 | +A | +ampere amp | 安培 安 アンペア 암페어 ампер А
mass length^2 time^-3 current^-2 ohm=1000 | +Ω +ohm | +ohm | 欧姆 オーム 옴 ом Ом kohm=1000 kilohm=1000 kilohms=1000 megohm=1000000 megohms=1000000
mass^-1 length^-2 time^3 current^2 siemens=1/1000 | +S | | siemens
time current coulomb=1 | +C_ | +coulomb | 库仑 クーロン кулон Кл
mass^-1 length^-2 time^4 current^2 farad=1/1000 | +F_ | +farad | 法拉
mass length^2 time^-2 current^-2 henry=1000 | +H | henry | henries
mass time^-2 current^-1 tesla=1000 | +T | +tesla | 特斯拉
mass length^2 time^-2 current^-1 weber=1000 | +Wb | +weber |
temperature kelvin=1 | K | kelvin | 开尔文
amount length^-3 molar=1000 | +M_ | molar |
amount mole=1 | +mol | +mole | 摩尔 モル 몰 моль
length^2 acre=4046.8564224 | | acre | акр акров 英亩
length^2 hectare=10000 | ha | hectare | hektar hectáreas ettari гектар гектаров 公顷
decibel decibel=1 | dB | decibel |
information bit=1 | +b | +bit | 比特
information byte=8 | +B | +byte | 字节 バイト 바이트 байт
angle degree=1 | ° deg | degree | degrés grad grados gradi graus градус градуса градусов 度 도
radian radian=1 | rad | radian | радиан 弧度
percent percent=1 | % pct | percent | pourcent prozent процент процента процентов パーセント 퍼센트
usd dollar=1 | $ | dollar buck | dólar dólares dollari доллар доллара долларов ドル 달러
usd us_dollar=1 | USD | | 美元 美金
usd cent=1/100 | ¢ | cent | 美分 セント 센트
eur euro=1 | € EUR | euro | евро 欧元 ユーロ 유로
gbp sterling=1 | £ GBP | | 英镑
gbp penny=1/100 | | penny | pence pennies
jpy yen=1 | JPY | | yen 日元 日圆 円
cny yuan=1 | CNY RMB | | yuan 元 块钱 人民币 юань юаней
cny jiao=1/10 | | | 角
krw won=1 | KRW ₩ | | won 원
inr rupee=1 | ₹ INR Rs | rupee | рупия рупий 卢比
rub ruble=1 | ₽ RUB | ruble rouble | рубль рубля рублей руб
rub kopek=1/100 | | kopek | копейка копейки копеек коп
chf franc=1 | CHF Fr | franc |
mxn peso=1 | MXN | peso |
aud australian_dollar=1 | AUD | |
cad canadian_dollar=1 | CAD | |
nzd new_zealand_dollar=1 | NZD | |
hkd hong_kong_dollar=1 | HKD | | 港元 港币
sgd singapore_dollar=1 | SGD | |
brl real=1 | BRL | | reais
sek swedish_krona=1 | SEK | | kronor
nok norwegian_krone=1 | NOK | |
dkk danish_krone=1 | DKK | |
pln zloty=1 | PLN zł | zloty | złoty złotych
try lira=1 | ₺ TRY | lira | liras lire
thb baht=1 | ฿ THB | baht |
ils shekel=1 | ₪ ILS | shekel |
vnd dong=1 | ₫ VND | dong | đồng
php philippine_peso=1 | ₱ PHP | |
uah hryvnia=1 | ₴ UAH | hryvnia | гривна гривны гривен
czk koruna=1 | CZK Kč | koruna | korun
huf forint=1 | HUF | forint |
ngn naira=1 | ₦ NGN | naira |
idr rupiah=1 | IDR | rupiah |
zar rand=1 | ZAR | |
bitcoin bitcoin=1 | ₿ BTC | bitcoin |
turn turn=1 | | turn revolution | rev revs
time^-1 turn rpm=1/60 | rpm RPM | |
length time^-1 mph=0.44704 | mph | |
length time^-1 kph=5/18 | kph kmh kmph | |
length time^-1 knot=463/900 | kn | knot |
information time^-1 bps=1 | +bps | |
tons tons=1 | | ton |
"""
_PREFIXES = {
    **{"kilo": ("k", 3), "mega": ("M", 6), "giga": ("G", 9), "tera": ("T", 12), "hecto": ("h_", 2), "deci": ("d", -1)},
    **{"centi": ("c", -2), "milli": ("m", -3), "micro": ("μ", -6), "nano": ("n", -9), "pico": ("p", -12)},
    **{"quilo": ("k", 3), "chilo": ("k", 3), "mili": ("m", -3), "zenti": ("c", -2), "senti": ("c", -2)},
    **{"кило": ("к", 3), "санти": ("с", -2), "милли": ("м", -3), "деци": ("д", -1), "мега": ("М", 6), "гига": ("Г", 9)},
}
_SI = {power: prefix for prefix, (_, power) in reversed(_PREFIXES.items())}
"""The English name of a prefix, which is the first for each power."""
_CYRILLIC = {"м": "метр", "г": "грамм", "л": "литр", "Вт": "ватт", "Дж": "джоуль", "Н": "ньютон", "Па": "паскаль"}
"""Symbols with Cyrillic prefixes: км, кг, мл."""
SQUARED = {"squared", "carré", "carrés", "cuadrado", "cuadrados", "quadrati", "quadrados", "quadrato", "quadrado"}
CUBED = {"cubed", "cube", "cubes", "cúbico", "cúbicos", "cubi", "cubo"}
SQUARE = {"square", "sq", "кв", "квадратный", "квадратных", "квадратные", "квадратного"}
CUBIC = {"cubic", "cu", "куб", "кубический", "кубических", "кубометров"}
PER = {"per", "par", "pro", "por", "в", "a", "an", "each", "every", "al", "à"}
"""Words that divide, behind a unit: "dollars an hour"."""
_POWER_PREFIXES = {"平方": 2, "立方": 3, "제곱": 2, "세제곱": 3, "quadrat": 2, "kubik": 3}


class Measure(NamedTuple):
    """A unit of the registry."""

    name: str
    powers: tuple[tuple[str, int], ...]
    """The exponents of its bases."""
    size: Fraction
    """In the bases' own units."""
    offset: Fraction = Fraction(0)
    """What is added to a value in the bases' units: of a temperature."""


def _powers(dimension: str) -> tuple[tuple[str, int], ...]:
    parts = (part.partition("^") for part in dimension.split())
    return tuple(sorted((base, int(exponent or 1)) for base, _, exponent in parts))


def folded(word: str) -> str:
    """A name in small letters, without accents."""
    marks = unicodedata.normalize("NFD", word.casefold())
    return unicodedata.normalize("NFC", "".join(mark for mark in marks if not "\u0300" <= mark <= "\u036f"))


def _entries() -> Iterator[tuple[str, Measure, bool]]:
    """Each name or symbol, its measure, and whether its case counts."""
    for line in _TABLE.strip().splitlines():
        head, symbols, names, others = (part.strip() for part in line.split("|"))
        dimension, _, named = head.rpartition(" ")
        name, _, size = named.partition("=")
        top, _, bottom = size.partition("/")
        measure = Measure(name, _powers(dimension), Fraction(top) / Fraction(bottom or 1))
        for symbol in symbols.split():
            yield from _prefixed(symbol, measure, is_symbol=True)
        for word in names.split():
            yield from _prefixed(word, measure, is_symbol=False)
            yield from _prefixed(f"{word}s", measure, is_symbol=False)
        for word in others.split():
            yield from _prefixed(word, measure, is_symbol=False)
        yield name, measure, False


def _prefixed(word: str, measure: Measure, is_symbol: bool) -> Iterator[tuple[str, Measure, bool]]:
    takes_prefix, word = word.startswith("+"), word.lstrip("+")
    word, _, times = word.partition("=")
    measure = measure._replace(size=measure.size * Fraction(times or 1))
    if not word.endswith("_"):
        yield word, measure, is_symbol
    for prefix, (symbol, power) in _PREFIXES.items() if takes_prefix else ():
        larger = measure._replace(name=_SI[power] + measure.name, size=measure.size * Fraction(10) ** power)
        yield (symbol + word if is_symbol else prefix + word).replace("_", ""), larger, is_symbol
        if symbol == "μ" and is_symbol:
            yield f"u{word}".replace("_", ""), larger, True


_SYMBOLS: dict[str, Measure] = {}
_NAMES: dict[str, Measure] = {}
for _word, _measure, _is_symbol in _entries():
    (_SYMBOLS if _is_symbol else _NAMES).setdefault(_word if _is_symbol else folded(_word), _measure)
for _short, _long in _CYRILLIC.items():
    for _prefix, (_letter, _) in _PREFIXES.items():
        if _prefix[0] > "\u0400":
            _SYMBOLS.setdefault(_letter + _short, _NAMES[folded(_prefix + _long)])
    _SYMBOLS.setdefault(_short, _NAMES[folded(_long)])
_OTHER_CASE = {"Km": "km", "KM": "km", "Kg": "kg", "KG": "kg", "Cm": "cm", "CM": "cm", "ML": "mL", "Min": "min"}
_OTHER_CASE |= {"KMH": "kmh", "MPH": "mph", "Lbs": "lbs", "LBS": "lbs", "Lb": "lb", "Oz": "oz", "Ft": "ft", "FT": "ft"}
_OTHER_CASE |= {"Hrs": "hrs", "Hr": "hr", "Sec": "sec", "Mins": "mins", "usd": "USD", "eur": "EUR", "rs": "Rs"}
"""Symbols that people write in another case, where it can mean nothing else."""
CURRENCY_SIGNS = "€£¥₹₽₩₺₴₪₫₱฿₦₿"
"""Besides the dollar, which is a sign of formulas too. A currency of the table above has its sign here as well."""
LETTERS = frozenset(f"NJWVAKLmsghlTSHCF$°%¢ÅΩ{CURRENCY_SIGNS}")
"""Units of one letter. Other letters are variables; C and F are temperatures, and t and d are too often names."""
UPRIGHT_VARIABLE = "[ac-fijn-ru-z]"
"""Small letters that are variables where they are upright too: `2\\text{x}`."""
_CELSIUS = Measure("celsius", (("temperature", 1),), Fraction(1), Fraction("273.15"))
_FAHRENHEIT = Measure("fahrenheit", (("temperature", 1),), Fraction(5, 9), Fraction("273.15") - Fraction(160, 9))
_NAMES |= {"celsius": _CELSIUS, "centigrade": _CELSIUS, "fahrenheit": _FAHRENHEIT}
_SYMBOLS |= {"\u00a5": Measure("\u00a5", (("yen or yuan", 1),), Fraction(1))}
_SYMBOLS |= {"C": _CELSIUS, "F": _FAHRENHEIT, "°C": _CELSIUS, "°F": _FAHRENHEIT}
MEASURES = {**_NAMES, **_SYMBOLS}
_UNSPACED = re.compile("|".join(sorted((n for n in MEASURES if n[0] > "\u2e80"), key=len, reverse=True)))


def measure_of(word: str) -> Measure | None:
    """The measure that a word names, as a whole; None if it names none."""
    if len(word) == 1 and word.isascii() and word not in LETTERS:
        return None
    found = _SYMBOLS.get(word) or _SYMBOLS.get(_OTHER_CASE.get(word, ""))
    return found or (_name(word) if len(word) > 1 or not word.isascii() else None)


def _name(word: str) -> Measure | None:
    word = folded(word)
    if word in _NAMES:
        return _NAMES[word]
    for prefix, power in _POWER_PREFIXES.items():
        if word.startswith(prefix) and (inner := _NAMES.get(word.removeprefix(prefix))):
            return raised(inner, power)
    return None


def raised(measure: Measure, power: int) -> Measure:
    powers = tuple((base, exponent * power) for base, exponent in measure.powers)
    return Measure(f"{measure.name}^{power}", powers, measure.size**power)


def parts_of_run(run: str) -> list[str]:
    """The units and the rest of a run of a script without spaces: 千米, 每, 小时."""
    parts: list[str] = []
    place = 0
    for unit in _UNSPACED.finditer(run):
        parts += [run[place : unit.start()], unit.group()]
        place = unit.end()
    return [part for part in (*parts, run[place:]) if part]
