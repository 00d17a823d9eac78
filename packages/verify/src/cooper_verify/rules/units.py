"""Units in answers: which words name a unit, and when different units make equal numbers different answers."""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, NamedTuple

from cooper_verify.rules.number_words import CHANGES_NUMBER, CONDITION, changes_after, changes_number
from cooper_verify.rules.plain_text import bare_text
from cooper_verify.rules.text_cache import text_cache

_MEASURES = """
length: metre=1 m meter meters metres | inch=0.0254 inches | foot=0.3048 ft feet | yard=0.9144 yd yds yards
length: mile=1609.344 mi miles
mass: gram=1 g gm gms grams | tonne=1000000 tonnes | ounce=28.349523125 oz ounces | pound=453.59237 lb lbs pounds
time: second=1 s sec secs seconds | minute=60 min mins minutes | hour=3600 h hr hrs hours | day=86400 days
time: week=604800 wk weeks
calendar: month=1 mo months | year=12 yr yrs years | decade=120 decades | century=1200 centuries
length^3: litre=1/1000 l liter liters litres
household volume: gallon=1 gal gallons | quart=1/4 qt quarts | pint=1/8 pt pints | cup=1/16 cups
household volume: teaspoon=1/768 tsp teaspoons | tablespoon=1/256 tbsp tablespoons
money: dollar=1 usd dollars buck bucks | cent=1/100 cents \u00a2
power: watt=1 w watts
energy: joule=1 j joules | watthour=3600 wh | calorie=4.184 cal calories
force: newton=1 newtons
pressure: pascal=1 pa pascals
frequency: hertz=1 hz
voltage: volt=1 v volts
current: ampere=1 amp amps amperes
resistance: ohm=1 ohms \u03a9
length^2: acre=4046.8564224 acres | hectare=10000 ha hectares
other: ton tons | euro eur euros | penny pence pennies | yen | rupee rupees rs inr
other: percent percentage pct % | degree degrees deg \u00b0 | radian rad radians | celsius c centigrade | fahrenheit f
other: kelvin k | square squared sq | cubic cubed cu | coulomb coulombs | tesla teslas
other: electronvolt ev | mole mol moles | decibel db | yuan rmb cny
other: byte bytes | kilobyte kb | megabyte mb | gigabyte gb | terabyte tb
other: franc chf | sterling gbp | peso mxn | ruble rub | cad | aud | jpy | krw
"""
"""Dimension, name and other names of each measure, with its factor if it is converted. Others, such as tons, pounds
sterling and currencies, are several units or change."""
_PREFIXES = {"kilo": ("k", 3), "mega": ("M", 6), "giga": ("G", 9), "centi": ("c", -2), "milli": ("m", -3)}
_PREFIXES |= {"micro": ("\u03bc", -6), "nano": ("n", -9)}
_WITH_PREFIX = {"metre": "m", "gram": "g", "litre": "L", "second": "s", "watt": "W", "joule": "J", "watthour": "Wh"}
_WITH_PREFIX |= {
    "newton": "N",
    "pascal": "Pa",
    "hertz": "Hz",
    "volt": "V",
    "ampere": "A",
    "ohm": "\u03a9",
    "calorie": "cal",
}
"""The symbols of measures that have prefixes. Their case counts: mW is not MW."""
_GROUPS = [
    (dimension, *group)
    for dimension, groups in re.findall(r"(?m)^([^:\n]++): (.+)", _MEASURES)
    for group in re.findall(r"(\w+)(?:=(\S+))?([^|]*)", groups)
]
_MEASURE = {alias: name for _, name, _, others in _GROUPS for alias in [name, *others.split()]}
_PREFIXED = {
    prefix + base: (prefix, base, symbol + base_symbol)
    for prefix, (symbol, _) in _PREFIXES.items()
    for base, base_symbol in _WITH_PREFIX.items()
}
"""`kilometre` and the like, with their parts and their symbols."""
_SYMBOLS = {symbol: name for name, (*_, symbol) in _PREFIXED.items()} | {"kWh": "kilowatthour", "Wh": "watthour"}
_MEASURE |= {
    prefix + alias: prefix + base
    for prefix, base, _ in _PREFIXED.values()
    for alias in [name for name, of in _MEASURE.items() if of == base and len(name) > 3]
}
_MEASURE |= {
    symbol.lower(): name
    for symbol, name in _SYMBOLS.items()
    if symbol[0] in "kc" or symbol in ("mm", "ml", "mL", "mg", "ms", "MHz", "GHz", "MPa")
}
_MEASURE |= {
    "kms": "kilometre",
    "kgs": "kilogram",
    "kilo": "kilogram",
    "kilos": "kilogram",
    "cms": "centimetre",
    "kilohm": "kiloohm",
}
_KNOWN = {*_MEASURE.values(), *_PREFIXED, "not", "no", "never"}
_SPEED = ("kilometre", "hour")
_COMPOUND = {"mph": ("mile", "hour"), "kph": _SPEED, "kmh": _SPEED, "cc": ("cubic", "centimetre")}
_POWERS = {"2": "square", "3": "cubic", "\u00b2": "square", "\u00b3": "cubic"}
_SIGNS = {"\u20ac": "euro", "\u00a3": "pound", "\u00a5": "yen", "\u20b9": "rupee"}
_LETTERS = {"N": "newton", "J": "joule", "W": "watt", "V": "volt", "A": "ampere", "K": "kelvin", "C": "celsius"} | {
    "\u03a9": "ohm",
    "L": "litre",
    "F": "fahrenheit",
    "m": "metre",
    "s": "second",
    "g": "gram",
    "h": "hour",
    "l": "litre",
}
"""Units of one letter. Other letters are variables."""
_IGNORED = set(
    re.findall(r"\w+", "the of on at to for from per each every total all altogether left is are was were more about")
)


class Scale(NamedTuple):
    """The scale of a unit, by which values become values in the base unit of its dimension."""

    dimension: str
    factor: Fraction
    offset: Fraction = Fraction(0)

    def in_base(self, value: Fraction) -> Fraction:
        return self.factor * value + self.offset


SCALES = {name: Scale(dimension, Fraction(factor)) for dimension, name, factor, _ in _GROUPS if factor}
SCALES |= {
    name: Scale(SCALES[base].dimension, SCALES[base].factor * Fraction(10) ** _PREFIXES[prefix][1])
    for name, (prefix, base, _) in _PREFIXED.items()
}
SCALES |= {
    "kelvin": Scale("temperature", Fraction(1)),
    "celsius": Scale("temperature", Fraction(1), Fraction("273.15")),
    "fahrenheit": Scale("temperature", Fraction(5, 9), Fraction("273.15") - Fraction(160, 9)),
}
_NO_FIXED_RATIO = (
    {"time", "calendar"},  # a month has 28 to 31 days
    {"length^3", "household volume"},  # gallons differ by country
    {"mass", "household volume"},  # there are ounces of both
)
_LONGEST = 200
_ENDS_IN_K = re.compile(r"\dK\Z")
_DOLLARS = re.compile(r"-?\s*\\?\$\s?-?[\d.]")
_DOLLARS_AT_END = re.compile(r"\d\s?(?:\\[,; ])?\\?\$\s?\Z")
_MICRO = re.compile(r"\\mu\s?(?=[A-Za-z])")
_VARIABLE = re.compile(r"[A-Za-z]\s*=")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_LETTER = re.compile(r"[A-Za-z%\u00b0\u00a2\u03a9\u03bc]")
_UNIT = re.compile(
    r"(?>(?:[A-Za-z .,'()/{}%\u00b0\u00a2\u00b2\u00b3\u03a9\u03bc-]++|\^\s*+(?:\{\s*+)?-?[1-9]|(?<=[A-Za-z])[23])+)"
)
_FACTOR = re.compile(r"[\d)}]([a-z])\Z")
_BASE = re.compile(r"\d_\{?(\d+)\}?\Z")
_SPACE = r"(?:\s|~|\\[,;: ])"
_BOUNDARY = re.compile(
    rf"(?:(?<=[\d)}}\]])(?>{_SPACE}*)|(?<=[A-Za-z\u03c0])(?>{_SPACE}+))(?=[A-Za-z\u20ac\u00a3\u03a9\u00b0]|\\(?:text|mathrm|mbox|[dt]?frac|Omega))"
    r"|(?<=[A-Za-z\u03c0])(?=\\(?:text|mathrm|mbox|[dt]?frac|Omega))"
)
_NAMES_UNIT = re.compile(r"\\(?:text|mathrm|mbox|Omega)|[\u20ac\u00a3\u03a9\u00b0]|\Am\s?/\s?s(?![A-Za-z])")
_HAS_VALUE = re.compile(r"[\d\\]|\u03c0")
_IN_WORDS = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{2,}")
_NAME = re.compile(r"(?<![A-Za-z\\])[A-Za-z]+")
_COMMAND_AT_END = re.compile(
    r"(?:(?<![\s~])(?<!\\[,;:])(?!(?<=\\) )(?>(?:\\[,;: ]|~|\s)+))?"
    r"\\(?:text(?:normal|rm)?|[mh]box|mathrm)\s*+\{[^{}]*+\}(?:\s*+\^\s*+(?:\{\s*+)?[23]\s*+\}?)?\Z"
)
_WORD = re.compile(r"[A-Za-z\u03a9\u03bc]+|[%\u00b0\u00a2]|[23\u00b2\u00b3]")


_QUOTIENT = re.compile(r"\\[dt]?frac\s?\{([^{}\d]{1,40})\}\s?\{([^{}\d]{1,40})\}")
_PIECE = re.compile(
    r"[\s.,'()\[\]/\u00b7*&-]++|\\cdot(?![A-Za-z])|\\(?=\$)|(?P<sign>[$\u20ac\u00a3\u00a5\u20b9\u20bd\u20a9\u03a9\u00a2\u00b0]|\\Omega(?![A-Za-z]))"
    r"|(?P<word>(?:\u03bc|\\mu\s?)?[^\W\d_]++(?>(?:['\u2019][^\W\d_]++)?))(?>(?P<power>\s?\^\s?(?:\{\s?-?[1-9]\s?\}|-?[1-9])(?!\d)|[23](?!\w))?)"
)
_GREEK = re.compile(r"[\u0370-\u03ff]")
_MOST_WORDS = 8


@text_cache(16384)
def is_unit(text: str) -> bool:
    r"""Whether a text behind a number is its unit: "km/h", `\text{ cm}^2`, "€", "per hour", "red apples", "(cats)".

    Words of any language count unless they change the number. One letter must be the symbol of a measure, and what
    follows the number without a space a measure too: 7cm has a unit, 7ab and 7 x are products.
    """
    if len(text) > _LONGEST:
        return False
    flat = _QUOTIENT.sub(r"\1/\2", bare_text(text)) or text
    if CHANGES_NUMBER.search(flat) or changes_after(f" {flat}") or CONDITION.search(flat):
        return False
    words, position, signs = [], 0, False
    while position < len(flat):
        if not (piece := _PIECE.match(flat, position)):
            return False
        position, signs = piece.end(), signs or piece["sign"] is not None
        words += [piece["word"]] if piece["word"] else []
        if piece["word"] and _GREEK.search(piece["word"].removeprefix("\u03bc").removesuffix("\u03a9")):
            return False  # 5\u03c0
    known = [word in _LETTERS or (len(word) > 1 and measures(word)) for word in words]
    is_attached = text[0].isalpha()
    letters = [word for word in words if len(word) == 1 and word.isascii() and word not in _LETTERS]
    if words and words[0] in ("st", "nd", "rd", "th"):
        return False  # the 8th is no number
    if not words or (is_attached and words[0].isascii() and not (known[0] and len(words[0]) > 1)):
        return signs and not words
    return set(letters) <= {"a"} and words[-1] != "a" and (len(words) <= _MOST_WORDS or all(known))


def measures(word: str) -> bool:
    """Whether a word is the name or symbol of a measure."""
    return word in _SYMBOLS or word.lower() in _MEASURE or word.lower() in _COMPOUND


def with_kelvins(text: str, reference: str) -> str:
    """The text with `300K` as `300 K` where the reference is in kelvins; elsewhere it may be thousands."""
    return f"{text[:-1]} K" if _ENDS_IN_K.search(text) and unit_of(reference) == {"kelvin"} else text


def same_unit(reference: str, text: str) -> bool:
    """Whether the units of two answers agree: those of "5 km" and "5 miles" do not, nor "5 apples" and "5 pears".

    A missing unit agrees with any, and so do words that only add to the other's ("12 different ways"). The m of 6m is a
    factor and must be there; the base of 204_5 may be missing.
    """
    if (factor := _FACTOR.search(reference)) and not re.search(rf"(?<![A-Za-z]){factor.group(1)}(?![A-Za-z])", text):
        return False
    if (base := _BASE.search(text)) and not ((other := _BASE.search(reference)) and other.group(1) == base.group(1)):
        return False
    one, other = unit_of(reference), unit_of(text)
    if attached := _FACTOR.search(text):
        other = frozenset([_MEASURE.get(attached.group(1), attached.group(1))])  # next to 6 cm, the m of 6m is a unit
    if not one or not other or not any(len(word) > 2 for word in one):  # "2 ab" is a formula without a unit
        return True
    return one & _KNOWN == other & _KNOWN and (one <= other or other <= one)


@text_cache(4096)
def unit_of(text: str) -> frozenset[str]:
    """The words after a value, measures under their full names (`{"kilometre", "hour"}`); empty if there are none."""
    if len(text) > _LONGEST:
        return frozenset()
    words = [name for sign, name in _SIGNS.items() if sign in text]
    if (_DOLLARS.match(text) or _DOLLARS_AT_END.search(text)) and text.count("$") == 1:
        words.append("dollar")
    text = _MICRO.sub("\u03bc", bare_text(text).replace(r"\Omega", "\u03a9"))
    if variable := _VARIABLE.match(text):
        text = text[variable.end() :]
    value_and_unit = _COMMAND.sub(" 1 ", text)  # \frac and \pi belong to the value
    if first := _LETTER.search(value_and_unit):
        value, unit = value_and_unit[: first.start()], value_and_unit[first.start() :]
        if any(map(str.isdigit, value)) and _UNIT.fullmatch(unit):
            found = _WORD.findall(unit)
            if len(found[0]) > 1 or not found[0].isalpha() or not value[-1].isalnum():  # 6m may be six times m
                words += [name for i in range(len(found)) for name in _named(found, i)]
    return frozenset(words) - _IGNORED


def are_measures(reference: str, text: str) -> bool:
    """Whether two answers have different units that are measures, so that one may be converted into the other's."""
    one, other = unit_of(reference), unit_of(text)
    return one != other and all(unit and unit <= _KNOWN for unit in (one, other))


def conversion(reference: str, text: str) -> Callable[[Fraction], Fraction] | Literal[False] | None:
    """The function that turns a value in the unit of `text` into one in the unit of `reference`. False if they measure
    different things, None if that is unknown."""
    one, other = _scale(unit_of(reference)), _scale(unit_of(text))
    if one is None or other is None or {one.dimension, other.dimension} in _NO_FIXED_RATIO:
        return None
    if one.dimension != other.dimension:
        return False
    return lambda value: (other.in_base(value) - one.offset) / one.factor


def _scale(words: frozenset[str]) -> Scale | None:
    """The scale of a measure, its square or cube, or a speed; None for all else."""
    for name, power in (("square", 2), ("cubic", 3)):
        if name in words:
            inner = _scale(words - {name})
            return Scale(f"{inner.dimension}^{power}", inner.factor**power) if inner else None
    scales = [SCALES.get(word) for word in words if word != "degree" or len(words) == 1]
    of = {scale.dimension: scale for scale in scales if scale}
    if len(scales) == 2 and of.keys() == {"length", "time"}:
        return Scale("speed", of["length"].factor / of["time"].factor)
    return scales[0] if len(scales) == 1 else None


def without_unit(text: str) -> str:
    r"""The text without a unit at its end: `8\sqrt{3}\text{ square inches}` and `8\sqrt{3} in^2` become `8\sqrt{3}`.

    Outside of `\text`, a lone letter stays: in `2\pi h` it may be a variable.
    """
    for boundary in _BOUNDARY.finditer(text, max(0, len(text) - _LONGEST)):
        unit = text[boundary.end() :]
        value = text[: boundary.start()]
        if _IN_WORDS.search(value) or not _HAS_VALUE.search(value):
            break
        if (_NAMES_UNIT.search(unit) or any(map(_is_long_name, _NAME.findall(unit)))) and is_unit(f" {unit}"):
            return value
    at_end = _COMMAND_AT_END.search(text) if unit_of(text) else None
    if at_end is None or any(changes(at_end.group()) for changes in (changes_number, changes_after, CONDITION.search)):
        return text
    return text[: at_end.start()]


def _is_long_name(word: str) -> bool:
    return len(word) > 3 or (len(word) > 1 and measures(word))


def _named(words: list[str], position: int) -> tuple[str, ...]:
    if words[position] in _LETTERS:
        return (_LETTERS[words[position]],)
    if words[position] in _SYMBOLS:
        return (_SYMBOLS[words[position]],)
    word = words[position].lower()
    if word in ("a", "an", "in"):  # "in total", "an hour"; but "5 in", "5 in^2"
        is_inch = word == "in" and (position + 1 == len(words) or words[position + 1] in _POWERS)
        return ("inch",) if is_inch else ()
    if word in _POWERS:
        return (_POWERS[word],)
    return _COMPOUND.get(word) or (_MEASURE.get(word) or _singular(word),)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if re.search(r"(?:[sxz]|ch|sh)es\Z", word):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word
