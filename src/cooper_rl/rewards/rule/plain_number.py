"""Plain numbers in answers: what counts as one, and when two are equal or plainly different."""

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

_NUMBER = r"(?:[1-9]\d{0,2}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_TENS = r"10\s*\^\s*(?:\{\s*([-+]?\d{1,3})\s*\}|([-+]?\d{1,3})(?!\d))"
_POWER_OF_TEN = re.compile(_TENS, re.ASCII)
_EXPONENT = rf"[eE]([-+]?\d{{1,3}})(?!\d)|\s*(?:\\times|\\cdot|[x\u00d7\u00b7*])\s*{_TENS}"
_PLAIN = re.compile(
    rf"(?P<sign>-\s?|\+)?[$€£]?(?P<top>{_NUMBER})(?:{_EXPONENT}|\s*/\s*(?P<bottom>\d+))?(?![\d.,/])", re.ASCII
)
WRITTEN = rf"(?:{_NUMBER})(?:{_EXPONENT}|\s*/\s*\d+)?"
"""Pattern of an unsigned number: `1,234`, `.5`, `3/4`, `6.02e23`."""
_PREFIX = re.compile(r"(?:[A-Za-z]\s*=|=|\\?\$(?=\s*-?[\d.]))\s*")
_UNIT = re.compile(r"(?:\s+[A-Za-z]{2,}){1,8}|\s*\([A-Za-z .'-]{1,40}\)")
_DEGREES = re.compile(
    r"\s*(?:\u00b0|\^\s*(?:\\circ|\{\s*\\circ\s*\})|degrees?\b)"
    r"\s*(?:C|F|[Cc]elsius|[Ff]ahrenheit|\\(?:text|mathrm)\s*\{\s*[CF]\s*\})?"
)
_CHANGES_NUMBER = re.compile(
    r"\b(?:tens?|dozens?|hundreds?|thousands?|[mb]illions?|trillions?|over|half|halves|thirds?|fourths?|quarters?"
    r"|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|hundredths?|thousandths?|squared|cubed|times|plus|minus"
    r"|divided|percent|percentage|pct|pi|sqrt|root|or|and|point|degrees?|factorial|choose|mod|not)\b",
    re.IGNORECASE,
)
_FRACTION = re.compile(
    r"(\d\s*)?(-\s*)?\\[dtc]?frac\s*(?:\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}|(\d)\s*(\d)|(\d)\s*\{\s*(\d+)\s*\})"
)
_MAX_DIGITS = 60
# Math-Verify compares floats rounded to 6 decimals. Numbers this close are left to it, unless they are tiny.
_PLAINLY_DIFFERENT = Fraction(1, 10_000)
_SHARE_DIFFERENT = Fraction(1, 1000)


@lru_cache(maxsize=16384)
def plain_number(text: str) -> str | None:
    r"""The number in "1,234", "$12", "x = 3/4" or "12 apples", as `1234` or `3/4`; None for everything else.

    Words after the number count as its unit, unless they change it ("12 thousand", "3 over 4").
    Scientific notation may be written `6.02e23` or `6.02 \times 10^{23}`; both become `6.02e23`.
    """
    if prefix := _PREFIX.match(text):
        text = text[prefix.end() :]
    if power := _POWER_OF_TEN.fullmatch(text):
        return f"1e{int(power.group(1) or power.group(2))}"
    number = _PLAIN.match(text)
    if number is None:
        return None
    rest = text[number.end() :]
    if rest and not _DEGREES.fullmatch(rest) and (not _UNIT.fullmatch(rest) or _CHANGES_NUMBER.search(rest)):
        return None
    sign = "-" if number["sign"] and number["sign"][0] == "-" else ""
    top = number["top"].replace(",", "")
    if exponent := next(filter(None, number.group(3, 4, 5)), None):
        return f"{sign}{top}e{int(exponent)}"
    return f"{sign}{top}/{number['bottom']}" if number["bottom"] else sign + top


def mixed_number(text: str) -> str | None:
    """A mixed number such as "1 1/2" as a fraction, here `3/2`; None for everything else."""
    mixed = re.fullmatch(r"(-?)(\d{1,9}) (\d{1,9})/(\d{1,9})", text, re.ASCII)
    if mixed is None:
        return None
    whole, top, bottom = map(int, mixed.group(2, 3, 4))
    return f"{mixed.group(1)}{whole * bottom + top}/{bottom}"


def with_divisions(text: str) -> str:
    r"""The text with `\frac{3}{4}` as `3/4`, and `1\frac{3}{4}` as `1 3/4`."""
    return _FRACTION.sub(_as_division, text)


def is_division(number: str, reduced: bool = False) -> bool:
    """Whether a plain number is a division without remainder (`24/2`) or, with `reduced`, can be cancelled (`6/8`)."""
    bottom = number.partition("/")[2]
    value = number_value(number) if bottom else None
    if value is None:
        return False
    return value.denominator == 1 or (reduced and value.denominator != int(bottom))


def has_changed_number(text: str) -> bool:
    """Whether words in `text` change the numbers next to them, so that the digits alone would be misread."""
    return bool(_CHANGES_NUMBER.search(text))


@lru_cache(maxsize=16384)
def same_number(one: str, other: str) -> bool | None:
    """Whether two plain numbers are equal; None if only Math-Verify's rounding can tell."""
    a, b = number_value(one), number_value(other)
    if a is None or b is None:
        return None
    if a == b:
        return True
    difference = abs(a - b)
    is_plain = difference > _PLAINLY_DIFFERENT or difference > _SHARE_DIFFERENT * max(abs(a), abs(b))
    return False if is_plain else None


def as_decimal(number: str) -> str:
    """A plain number in a form that Math-Verify can read: `6.02e23` written out, `0.0` as 0.

    The latter is needed because Math-Verify rounds all small floats to 0.0.
    """
    if "/" in number:
        return number
    value = Decimal(number)
    return number if value and "e" not in number else f"{value.normalize():f}"


def number_value(number: str) -> Fraction | None:
    """The value of a plain number; None if it has more than 60 digits or divides by zero."""
    if sum(character.isdigit() for character in number) > _MAX_DIGITS:
        return None
    top, _, bottom = number.partition("/")
    denominator = int(bottom) if bottom else 1
    return Fraction(top) / denominator if denominator else None


def _as_division(fraction: re.Match[str]) -> str:
    whole, minus, *parts = fraction.groups()
    top, bottom = filter(None, parts)
    return f"{f'{whole.strip()} ' if whole else ''}{(minus or '').strip()}{top}/{bottom}"
