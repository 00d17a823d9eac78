"""Plain numbers in answers: what counts as one, and when two of them are equal or plainly different."""

import re
from fractions import Fraction
from functools import lru_cache

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_PLAIN = re.compile(rf"(?P<sign>-\s?|\+)?[$€£]?(?P<top>{_NUMBER})(?:\s*/\s*(?P<bottom>\d+))?(?![\d.,/])", re.ASCII)
_PREFIX = re.compile(r"(?:[A-Za-z]\s*=|=|\\?\$(?=\s*-?[\d.]))\s*")
_UNIT = re.compile(r"(?:\s+[A-Za-z]{2,}){1,8}|\s*\([A-Za-z ]{1,40}\)")
_CHANGES_NUMBER = re.compile(
    r"\b(?:tens?|dozens?|hundreds?|thousands?|[mb]illions?|trillions?|over|half|halves|thirds?|fourths?|quarters?"
    r"|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|hundredths?|thousandths?|squared|cubed|times|plus|minus"
    r"|divided|percent|percentage|pct|pi|sqrt|root|or|and|point|degrees?|factorial|choose|mod|not)\b",
    re.IGNORECASE,
)
_MAX_DIGITS = 15
# Math-Verify compares floats rounded to 6 decimals; closer than this is left to it.
_PLAINLY_DIFFERENT = Fraction(1, 10_000)


@lru_cache(maxsize=16384)
def plain_number(text: str) -> str | None:
    """The number in "1,234", "$12", "x = 3/4" or "12 apples", as `1234` or `3/4`; None for everything else.

    Words after the number are taken for its unit, except where they change it ("12 thousand", "3 over 4").
    """
    if prefix := _PREFIX.match(text):
        text = text[prefix.end() :]
    number = _PLAIN.match(text)
    if number is None:
        return None
    rest = text[number.end() :]
    if rest and (not _UNIT.fullmatch(rest) or _CHANGES_NUMBER.search(rest)):
        return None
    sign = "-" if number["sign"] and number["sign"][0] == "-" else ""
    top = number["top"].replace(",", "")
    return f"{sign}{top}/{number['bottom']}" if number["bottom"] else sign + top


def has_changed_number(text: str) -> bool:
    """Whether words in `text` change the numbers beside them, so that the digits alone would be misread."""
    return bool(_CHANGES_NUMBER.search(text))


@lru_cache(maxsize=16384)
def same_number(one: str, other: str) -> bool | None:
    """Whether two plain numbers are equal; None where only Math-Verify's rounding can tell."""
    a, b = _value(one), _value(other)
    if a is None or b is None:
        return None
    if a == b:
        return True
    return False if abs(a - b) > _PLAINLY_DIFFERENT else None


def _value(number: str) -> Fraction | None:
    if sum(character.isdigit() for character in number) > _MAX_DIGITS:
        return None
    top, _, bottom = number.partition("/")
    denominator = int(bottom) if bottom else 1
    return Fraction(top) / denominator if denominator else None
