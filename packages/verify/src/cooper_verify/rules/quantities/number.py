"""Numbers in answers: what counts as one, and when two are equal or plainly different."""

import re
from fractions import Fraction
from functools import lru_cache

from cooper_verify.rules.quantities.units import is_unit
from cooper_verify.rules.text.text_cache import text_cache
from cooper_verify.rules.vocabulary.unit_table import CURRENCY_SIGNS

_NUMBER = r"(?:[1-9]\d{0,2}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_TENS = r"10\s*\^\s*(?:\{\s*([-+]?\d{1,3})\s*\}|([-+]?\d{1,3})(?!\d))"
_POWER_OF_TEN = re.compile(_TENS, re.ASCII)
_EXPONENT = rf"[eE]([-+]?\d{{1,3}})(?!\d)|\s*(?:\\times|\\cdot|[x\u00d7\u00b7*])\s*{_TENS}"
_PLAIN = re.compile(
    rf"(?P<sign>-\s?|\+)?(?:[${CURRENCY_SIGNS}]\s?)?(?P<top>{_NUMBER})(?:{_EXPONENT}|\s*/\s*(?P<bottom>\d+))?(?![\d.,/])",
    re.ASCII,
)
_PREFIX = re.compile(
    r"(?:[A-Za-z]\s*=|=|(?:US|C|CA|A|AU|NZ|HK|S)?\\?\$(?=\s*-?[\d.])|(?:USD|EUR|GBP|INR|JPY|CNY|RMB|CHF|Rs\.?)(?=\s?\d))\s*"
)
_DEGREES = re.compile(
    r"\s*(?:\u00b0|\^\s*(?:\\circ|\{\s*\\circ\s*\})|degrees?\b)"
    r"\s*(?:C|F|[Cc]elsius|[Cc]entigrade|[Ff]ahrenheit|\\(?:text|mathrm)\s*\{\s*[CF]\s*\})?"
)
_FRACTION = re.compile(
    r"(\d\s*)?(-\s*)?\\[dtc]?frac\s*(?:\{\s*(-?\d+)\s*\}\s*\{\s*(-?\d+)\s*\}|(\d)\s*(\d)|(\d)\s*\{\s*(\d+)\s*\})"
)
_MAX_DIGITS = 60
MOST_FIGURES = 400
"""Before or behind the point of a number in a formula."""
_PLAINLY_DIFFERENT = Fraction(1, 10_000)
_SHARE_DIFFERENT = Fraction(1, 1000)


@text_cache(16384)
def plain_number(text: str) -> str | None:
    r"""The number in "1,234", "$12", "x = 3/4" or "12 apples", as `1234` or `3/4`; None for everything else.

    Words after it count as its unit, unless they change it ("12 thousand"). `6.02 \times 10^{23}` becomes `6.02e23`.
    """
    if prefix := _PREFIX.match(text):
        text = text[prefix.end() :]
    if power := _POWER_OF_TEN.fullmatch(text):
        return f"1e{int(power.group(1) or power.group(2))}"
    number = _PLAIN.match(text)
    if number is None:
        return None
    rest = text[number.end() :]
    if rest and not _DEGREES.fullmatch(rest) and not is_unit(rest):
        return None
    sign = "-" if number["sign"] and number["sign"][0] == "-" else ""
    top = number["top"].replace(",", "")
    if exponent := next(filter(None, number.group(3, 4, 5)), None):
        return f"{sign}{top}e{int(exponent)}"
    return f"{sign}{top}/{number['bottom']}" if number["bottom"] else sign + top


def any_number(text: str) -> str | None:
    """As `plain_number`, but of a mixed number too: `3/2` for "1 1/2"."""
    mixed = re.fullmatch(r"(-?)(\d{1,9}) (\d{1,9})/(\d{1,9})", text, re.ASCII)
    if mixed is None:
        return plain_number(text)
    whole, top, bottom = map(int, mixed.group(2, 3, 4))
    return f"{mixed.group(1)}{whole * bottom + top}/{bottom}"


def with_divisions(text: str) -> str:
    r"""The text with `\frac{3}{4}` as `3/4`, and `1\frac{3}{4}` as `1 3/4`."""

    def as_division(fraction: re.Match[str]) -> str:
        whole, minus, *parts = fraction.groups()
        top, bottom = filter(None, parts)
        signs = (minus or "").strip() + ("-" if top[0] == "-" else "") + ("-" if bottom[0] == "-" else "")
        sign = "-" if len(signs) % 2 else ""
        return f"{f'{whole.strip()} ' if whole else ''}{sign}{top.lstrip('-')}/{bottom.lstrip('-')}"

    return _FRACTION.sub(as_division, text)


def is_division(number: str) -> bool:
    """Whether a plain number is a division without remainder: `24/2`."""
    value = number_value(number) if "/" in number else None
    return value is not None and value.denominator == 1


def same_number(one: str, other: str) -> bool | None:
    """Whether two plain numbers are equal; None if they are so close that one may be the other, rounded."""
    return _same_value(one, other) if len(one) + len(other) <= 3 * _MAX_DIGITS else None


@lru_cache(maxsize=16384)
def _same_value(one: str, other: str) -> bool | None:
    a, b = number_value(one), number_value(other)
    if a is None or b is None:
        return None
    is_plain = abs(a - b) > min(_PLAINLY_DIFFERENT, _SHARE_DIFFERENT * max(abs(a), abs(b)))
    return True if a == b else False if is_plain else None


def number_value(number: str) -> Fraction | None:
    """The value of a plain number; None if it has more than 60 digits or divides by zero."""
    if sum(character.isdigit() for character in number) > _MAX_DIGITS:
        return None
    top, _, bottom = number.partition("/")
    denominator = int(bottom) if bottom else 1
    return Fraction(top) / denominator if denominator else None


_FIGURES = re.compile(rf"[-+]?(?:\d{{1,{MOST_FIGURES}}}(?:\.\d{{0,{MOST_FIGURES}}})?|\.\d{{1,{MOST_FIGURES}}})")


def figures_value(figures: str) -> Fraction | None:
    """The value of figures with at most one point between them; None for all else, and for more figures than are read:
    Python refuses to read 4,301."""
    return Fraction(figures) if _FIGURES.fullmatch(figures) else None
