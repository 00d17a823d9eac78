r"""Units in answers: which text behind a number is its unit, and what units say about two numbers.

A unit is a product of measures (`unit_table`) and of words that name none ("red apples", "people per room"), each with
an exponent. Two units of measures are equal, convertible or different. A word that names no measure may be another name
of another word: two such units are the same, or nobody knows.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from cooper_verify.rules.text.plain_text import bare_text, stem
from cooper_verify.rules.text.text_cache import text_cache
from cooper_verify.rules.vocabulary.languages import LANGUAGES
from cooper_verify.rules.vocabulary.number_words import CHANGES_NUMBER, CONDITION, ONES, changes_after, changes_number
from cooper_verify.rules.vocabulary.unit_table import (
    CUBED,
    CUBIC,
    CURRENCY_SIGNS,
    LETTERS,
    PER,
    SQUARE,
    SQUARED,
    UPRIGHT_VARIABLE,
    Measure,
    measure_of,
    parts_of_run,
    raised,
)

_LONGEST = 200
_MOST_WORDS = 8
_ALWAYS_PER = {"per", "a", "an"}
_COUNTERS = {counter for language in LANGUAGES for counter in language.counters.split()}


@dataclass(frozen=True)
class Unit:
    """What stands behind a number."""

    powers: tuple[tuple[str, int], ...] = ()
    """The exponents of the bases of its measures, and of its words, which begin with `?`."""
    size: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)
    words: tuple[str, ...] = ()
    """Its words that name no measure, as they are written."""
    names: tuple[str, ...] = ()
    """The names of its measures."""
    is_ambiguous: bool = False
    """Whether it is written in a way that may mean two things: `J/kg*K`."""

    def __bool__(self) -> bool:
        return bool(self.powers or self.words or self.names)

    @property
    def is_known(self) -> bool:
        """Whether it has measures alone."""
        return bool(self.names) and not self.words and not self.is_ambiguous

    @property
    def dimension(self) -> str:
        """`length time^-1` of a speed."""
        return " ".join(base if power == 1 else f"{base}^{power}" for base, power in self.powers)

    def is_(self, *names: str) -> bool:
        """Whether it is one of these measures, and nothing else."""
        return len(self.names) == 1 and self.names[0] in names and not self.words


NO_UNIT = Unit()
_PIECE = re.compile(
    r"(?P<space>[\s~,.&'()\[\]-]++|\\(?=\$)|\\[,;: ])|(?P<times>\u00b7|\*|\u22c5|\\cdot(?![A-Za-z])"
    r"|\\times(?![A-Za-z]))"
    r"|(?P<over>/)|(?P<omega>\\Omega(?![A-Za-z]))|(?P<sign>\u00b0\s?[CF](?![A-Za-z])|[\u00a2\u00b0%$"
    rf"{CURRENCY_SIGNS}])"
    r"|(?P<word>(?:\u03bc|\\mu\s?)?[^\W\d_]++(?>(?:['\u2019][^\W\d_]++)?)|\u00c5)"
    r"(?P<power>\s?\^\s?(?:\{\s?[-+]?[1-9]\s?\}|[-+]?[1-9])(?!\d)|[23](?!\w))?"
)
_JOINED = re.compile(r"([^\W\d_]{2,}+)-([^\W\d_]{2,}+)")
"""Two words that may be one measure: "light-years"."""
_UNITS_OF_QUOTIENT = r"\{((?:[^{}\d^]|\^\s?\{?\d\}?){1,40})\}"
_QUOTIENT = re.compile(rf"\\[dt]?frac\s?{_UNITS_OF_QUOTIENT}\s?{_UNITS_OF_QUOTIENT}")
_PREFIX_OF_OHM = re.compile(r"(?<![^\W\d_])([kMm])\s+(?=\u03a9)")
_IN_A_PLACE = re.compile(r"\bin (?!per\b)[^\W\d_]{2}")
"""A preposition: "12 in the red"."""
_RAISED = re.compile(r"(?<=[a-z])\s(?:squared|cubed)\b")
_GREEK = re.compile(r"[\u0370-\u03ff]")


class _Reader:
    """Reads the text of a unit from left to right."""

    def __init__(self) -> None:
        self.powers: dict[str, int] = {}
        self.size, self.offset = Fraction(1), Fraction(0)
        self.words: list[str] = []
        self.names: list[str] = []
        self.phrase: list[str] = []
        self.exponent_of_phrase = 1
        self.sign, self.next_power = 1, 1
        self.has_divided = self.is_ambiguous = self.has_letter_c = False

    def __bool__(self) -> bool:
        return bool(self.names or self.phrase)

    def add(self, measure: Measure, exponent: int) -> None:
        self.close()
        if self.names == ["degree"] and measure.name in ("celsius", "fahrenheit"):
            self.__init__()  # "degrees Celsius"
        exponent *= self.sign * self.next_power
        for base, power in raised(measure, exponent).powers:
            self.powers[base] = self.powers.get(base, 0) + power
        self.size *= measure.size**exponent
        self.offset = measure.offset if not self.names else Fraction(0)
        self.names.append(measure.name)
        self.next_power = 1

    def close(self) -> None:
        """End a phrase of words: its last one is what is counted."""
        if self.phrase:
            head = f"?{_stem(self.phrase[-1])}"
            self.powers[head] = self.powers.get(head, 0) + self.sign * self.exponent_of_phrase
            self.phrase, self.exponent_of_phrase = [], 1

    def divide(self) -> None:
        self.close()
        self.sign, self.has_divided = -1, True

    def unit(self) -> Unit:
        self.close()
        powers = tuple(sorted((base, power) for base, power in self.powers.items() if power))
        is_ambiguous = self.is_ambiguous or (self.has_letter_c and len(self.names) > 1)  # coulombs, or Celsius
        return Unit(powers, self.size, self.offset, tuple(self.words), tuple(self.names), is_ambiguous)


def _stem(word: str) -> str:
    return {"people": "person", "men": "man", "women": "woman", "children": "child", "mice": "mouse"}.get(
        word.casefold(), stem(word.casefold())
    )


@text_cache(16384)
def read_unit(text: str) -> Unit | None:
    """The unit that a text behind a number is, as a whole; None for other text."""
    if len(text) > _LONGEST:
        return None
    return _read(_flat(text) or text)


def _flat(text: str) -> str:
    """The text of a unit without layout: `g/(cm^3)`."""
    flat = bare_text(text.replace(r"\Omega", "\u03a9"))
    return _QUOTIENT.sub(r" \1/(\2)", _PREFIX_OF_OHM.sub(r"\1", flat))


def _read(flat: str, money: Measure | None = None) -> Unit | None:
    """The unit of a text without layout; `money` stands in front of the number."""
    reader, position, depth = _Reader(), 0, 0
    if money:
        reader.add(money, 1)
    while position < len(flat):
        if (joined := _JOINED.match(flat, position)) and (measure := measure_of("".join(joined.groups()))):
            reader.add(measure, 1)
            position = joined.end()
            continue
        if not (piece := _PIECE.match(flat, position)) or _IN_A_PLACE.match(flat, position):
            return None
        position = piece.end()
        if piece["space"]:
            depth += piece["space"].count("(") - piece["space"].count(")")
        elif piece["times"]:
            reader.is_ambiguous = reader.is_ambiguous or (reader.has_divided and depth <= 0)
        elif piece["over"] or (piece["word"] in PER and (reader or piece["word"] in _ALWAYS_PER)):
            reader.divide()
        elif not _read_word(reader, piece):
            return None
    return reader.unit()


def _read_word(reader: _Reader, piece: re.Match[str]) -> bool:
    word = piece["sign"] or piece["omega"] or piece["word"]
    word = {"\\Omega": "\u03a9"}.get(word, re.sub(r"\\mu\s?", "\u03bc", word).replace("\u00b0 ", "\u00b0"))
    exponent = int(re.sub(r"[^\d-]", "", piece["power"])) if piece["power"] else 1
    if (small := word.casefold()) in SQUARE | CUBIC:
        reader.close()
        reader.next_power = 2 if small in SQUARE else 3
    elif small in SQUARED | CUBED and reader.names and not reader.phrase:
        return _raise_last(reader, 2 if small in SQUARED else 3)
    elif measure := measure_of(word):
        reader.add(measure, exponent)
        reader.has_letter_c = reader.has_letter_c or word == "C"
    elif word[0] > "\u2e80" and len(parts := parts_of_run(word)) > 1:
        for part in parts:
            if part in ("\u6bcf", "\u3092", "\u306e"):
                reader.divide()
            elif found := measure_of(part):
                reader.add(found, 1)
            else:
                _add_word(reader, part, 1)
    else:
        _add_word(reader, word, exponent)
    return True


def _add_word(reader: _Reader, word: str, exponent: int) -> None:
    if word in _COUNTERS:
        return
    for counter in _COUNTERS if word[0] > "\u2e80" else ():
        word = word.removeprefix(counter) or word
    if word.casefold() in ("of", "the", "such"):
        reader.close()
        return
    reader.words.append(word)
    reader.phrase.append(word)
    reader.exponent_of_phrase = exponent


def _raise_last(reader: _Reader, power: int) -> bool:
    """Raise the last measure: "metres squared"."""
    if measure := measure_of(reader.names[-1]):
        for _ in range(power - 1):
            reader.add(measure, 1)
    return measure is not None


@text_cache(16384)
def is_unit(text: str) -> bool:
    r"""Whether a text behind a number is its unit: "km/h", `\text{ cm}^2`, "\u20ac", "per hour", "red apples".

    What follows the number without a space must be a measure: 7cm has a unit, 7ab and 7 x are products.
    """
    if text[0] in "'\u2019":
        return False  # "12's square"
    flat = _flat(text) or text
    if CHANGES_NUMBER.search(_RAISED.sub("", flat)) or changes_after(f" {flat}") or CONDITION.search(flat):
        return False
    unit = read_unit(text)
    if unit is None or (not unit and flat.strip() not in _COUNTERS):
        return False
    if any(base[0] == "?" and abs(power) > 1 for base, power in unit.powers):
        return False  # \frac12 gt^2
    words = re.findall(r"[^\W\d_]+", flat)
    if words and (words[0] in ("st", "nd", "rd", "th") or words[-1] in ("a", "an")):
        return False
    if any(ONES.get(word.casefold(), 0) > 1 for word in words) or flat.lstrip().startswith(("(a ", "(an ", "(the ")):
        return False  # "one in four", "12 (a lower bound)"
    if any(_GREEK.search(word.removeprefix("\u03bc").removesuffix("\u03a9")) for word in words):
        return False
    letters = [word for word in words if len(word) == 1 and word.isascii() and word not in LETTERS]
    if text[0].isalpha() and text[0].isascii() and not (len(words[0]) > 1 and measure_of(words[0])):
        return False
    return {*letters} <= {"a"} and (len(words) <= _MOST_WORDS or unit.is_known)


def measures(word: str) -> bool:
    """Whether a word is the name or symbol of a measure."""
    return measure_of(word) is not None


_ENDS_IN_K = re.compile(r"\dK\Z")


def with_kelvins(text: str, reference: str) -> str:
    """The text with `300K` as `300 K` where the reference is in kelvins; elsewhere it may be thousands."""
    return f"{text[:-1]} K" if _ENDS_IN_K.search(text) and unit_of(reference).is_("kelvin") else text


_ENDS_IN_M = re.compile(r"(?<=\d)(?:\s|\\[,;: ]|~)*(?:\\(?:text|mathrm|rm)\s?\{\s*)?M\s?\}?\Z")
_ASKS_CONCENTRATION = re.compile(r"(?i)\b(?:concentration|molarity|molar)")


def with_molars(text: str, question: str) -> str:
    """The text with `0.5 M` as `0.5 molar` where the question asks for a concentration; else it may be millions."""
    is_molar = text.rstrip("} ")[-1:] == "M" and _ASKS_CONCENTRATION.search(question)
    return _ENDS_IN_M.sub(" molar", text) if is_molar else text


_RATIO_IN_WORDS = re.compile(r"\d+(?: to \d+)+")


def with_colons(text: str, reference: str) -> str:
    """The text with "3 to 2" as `3:2` where the reference is a ratio; elsewhere it may be a range."""
    said = bare_text(text) if ":" in reference and "to" in text else ""
    return said.replace(" to ", ":") if _RATIO_IN_WORDS.fullmatch(said) else text


_NO_FIXED_RATIO = (
    {"time", "calendar"},  # a month has 28 to 31 days
    {"length^3", "household"},  # gallons differ by country
    {"mass", "household"},  # there are ounces of both
    {"mass", "gbp"},  # pounds
    {"temperature", "current time"},  # C is Celsius and coulombs
    {"mass", "tons"},
    {"angle", "temperature"},
    {"angle", "radian"},
    {"time^-1", "time^-1 turn"},
    {"yen or yuan", "jpy"},
    {"yen or yuan", "cny"},
)


_CURRENCIES = {
    measure.name for measure in map(measure_of, (*CURRENCY_SIGNS, "$", "USD", "AUD", "CAD", "CHF", "SEK")) if measure
}
_DOLLARS = ("australian_dollar", "canadian_dollar", "new_zealand_dollar", "hong_kong_dollar", "singapore_dollar")


def compare_units(one: Unit, other: Unit) -> Literal["same", "converted", "different", "unknown"]:
    """What the units say of two numbers. One that is missing says nothing."""
    if not one or not other or one == other:
        return "same"
    if other.is_("dollar") and one.is_(*_DOLLARS):
        return "same"  # a dollar is that of the country that the reference names
    if one.is_("dollar") and other.is_(*_DOLLARS):
        return "unknown"
    if one.is_ambiguous or other.is_ambiguous:
        return "unknown"
    if one.powers != other.powers and (one.is_("cent") or other.is_("cent")):
        return "unknown"  # of dollars, or of another currency
    if _is_price(one, other) or _is_price(other, one):
        return "unknown"
    if one.powers == other.powers and (one.size, one.offset) == (other.size, other.offset):
        words, others = ({*map(_stem, unit.words)} for unit in (one, other))
        return "same" if words <= others or others <= words else "unknown"  # "red balls" and "blue balls"
    if one.is_known and other.is_known:
        if one.powers == other.powers:
            return "converted"
        return "unknown" if {one.dimension, other.dimension} in _NO_FIXED_RATIO else "different"
    return "unknown"


def _is_price(one: Unit, other: Unit) -> bool:
    """Whether one is money or percent and the other the same for something: "$3" and "$3 per pound"."""
    money, price = {*one.powers}, {*other.powers}
    return one.is_(*_CURRENCIES, "percent") and money < price and all(power < 0 for _, power in price - money)


def converted(value: Fraction, one: Unit, other: Unit) -> Fraction:
    """A value in one unit, in another of the same dimension."""
    return (value * one.size + one.offset - other.offset) / other.size


_DOLLARS_AT_END = re.compile(r"\d\s?(?:\\[,; ])?\\?\$\s?\Z")
_MONEY = re.compile(rf"-?\s*(?P<sign>[{CURRENCY_SIGNS}]|\\?\$)\s?-?[\d.]")
_VARIABLE = re.compile(r"[A-Za-z]\s*=")
_COMMAND = re.compile(r"\\(?!Omega|mu(?![A-Za-z])|cdot(?!\s*\d)|text|math)[A-Za-z]+")
_EXPONENT = re.compile(r"(?<=\d)[eE](?=[-+]?\d)")
_FIRST = re.compile(rf"[^\W\d_]|[%\u00b0\u00a2${CURRENCY_SIGNS}]|\\Omega|\\mu|/(?=\s?[A-Za-z])")


@text_cache(4096)
def unit_of(text: str) -> Unit:
    """The unit of a value, which its text has behind it or, of money, in front of it; `NO_UNIT` if there is none."""
    if len(text) > _LONGEST:
        return NO_UNIT
    bare = _EXPONENT.sub("1", _flat(text))
    is_formula = text.startswith("$") and text.count("$") % 2 == 0  # `$12$ dozen` has no dollars
    if not is_formula and (money := _MONEY.match(text) or _MONEY.match(bare)):
        rest = _FIRST.search(_COMMAND.sub(" 1 ", bare), 1)
        measure = measure_of(money["sign"][-1])
        return _read(_COMMAND.sub(" 1 ", bare)[rest.start() :] if rest else "", measure) or NO_UNIT
    if variable := _VARIABLE.match(bare):
        bare = bare[variable.end() :]
    shown = _COMMAND.sub(" 1 ", bare)  # \frac and \pi belong to the value
    first = _FIRST.search(shown)
    if first is None:
        is_money = text.count("$") == 1 and _DOLLARS_AT_END.search(text)
        return _read("", measure_of("$")) or NO_UNIT if is_money else NO_UNIT
    value, behind = shown[: first.start()], shown[first.start() :]
    if not any(map(str.isdigit, value)):
        return NO_UNIT
    is_letter = re.match(r"(?!a\s[^\W\d_]{2})[A-Za-z](?![^\W\d_])", behind)
    if is_letter and (value[-1].isalnum() or behind[0] not in LETTERS):
        return NO_UNIT  # 6m may be six times m
    return read_unit(behind) or NO_UNIT


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


_LETTER_ALONE = re.compile(rf"\{{\s*{UPRIGHT_VARIABLE}\s*\}}\Z")


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
    if (
        at_end is None
        or _LETTER_ALONE.search(at_end.group())
        or any(changes(at_end.group()) for changes in (changes_number, changes_after, CONDITION.search))
    ):
        return text
    return text[: at_end.start()]


def _is_long_name(word: str) -> bool:
    return len(word) > 3 or (len(word) > 1 and measures(word))
