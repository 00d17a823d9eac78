"""Numbers in answers: what counts as one, when two are equal or plainly different, and whether an answer gives one."""

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from cooper_base.data.verdict import Verdict
from cooper_verify.rules.extraction import SENTENCE_END, FinalAnswer
from cooper_verify.rules.number_words import APPROXIMATELY_BEFORE, CHANGES_BEFORE, changes_after
from cooper_verify.rules.plain_text import bare_text
from cooper_verify.rules.text_cache import text_cache
from cooper_verify.rules.units import are_measures, is_unit, measures

_NUMBER = r"(?:[1-9]\d{0,2}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_TENS = r"10\s*\^\s*(?:\{\s*([-+]?\d{1,3})\s*\}|([-+]?\d{1,3})(?!\d))"
_POWER_OF_TEN = re.compile(_TENS, re.ASCII)
_EXPONENT = rf"[eE]([-+]?\d{{1,3}})(?!\d)|\s*(?:\\times|\\cdot|[x\u00d7\u00b7*])\s*{_TENS}"
_PLAIN = re.compile(
    rf"(?P<sign>-\s?|\+)?(?:[$€£¥₹₽₩]\s?)?(?P<top>{_NUMBER})(?:{_EXPONENT}|\s*/\s*(?P<bottom>\d+))?(?![\d.,/])",
    re.ASCII,
)
_WRITTEN = rf"(?:{_NUMBER})(?:{_EXPONENT}|\s*/\s*\d+)?"
_PREFIX = re.compile(
    r"(?:[A-Za-z]\s*=|=|(?:US|C|CA|A|AU|NZ|HK|S)?\\?\$(?=\s*-?[\d.])|(?:USD|EUR|GBP|INR|JPY|CNY|RMB|CHF|Rs\.?)(?=\s?\d))\s*"
)
_DEGREES = re.compile(
    r"\s*(?:\u00b0|\^\s*(?:\\circ|\{\s*\\circ\s*\})|degrees?\b)"
    r"\s*(?:C|F|[Cc]elsius|[Ff]ahrenheit|\\(?:text|mathrm)\s*\{\s*[CF]\s*\})?"
)
_FRACTION = re.compile(
    r"(\d\s*)?(-\s*)?\\[dtc]?frac\s*(?:\{\s*(-?\d+)\s*\}\s*\{\s*(-?\d+)\s*\}|(\d)\s*(\d)|(\d)\s*\{\s*(\d+)\s*\})"
)
_MAX_DIGITS = 60
# Math-Verify compares floats rounded to 6 decimals. Numbers this close are left to it, unless they are tiny.
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


def is_division(number: str, reduced: bool = False) -> bool:
    """Whether a plain number is a division without remainder (`24/2`) or, with `reduced`, can be cancelled (`6/8`)."""
    bottom = number.partition("/")[2]
    if not bottom or (value := number_value(number)) is None:
        return False
    return value.denominator == 1 or (reduced and value.denominator != int(bottom))


def same_number(one: str, other: str) -> bool | None:
    """Whether two plain numbers are equal; None if only Math-Verify's rounding can tell."""
    return _same_value(one, other) if len(one) + len(other) <= 3 * _MAX_DIGITS else None


@lru_cache(maxsize=16384)
def _same_value(one: str, other: str) -> bool | None:
    a, b = number_value(one), number_value(other)
    if a is None or b is None:
        return None
    is_plain = abs(a - b) > min(_PLAINLY_DIFFERENT, _SHARE_DIFFERENT * max(abs(a), abs(b)))
    return True if a == b else False if is_plain else None


def as_decimal(number: str) -> str:
    """A plain number for Math-Verify: `6.02e23` written out, and `0.0` as 0, for it rounds small floats to 0.0."""
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


_TOKEN = re.compile(
    rf"(?:(?<![\d)}}\]!%])(?<![\d)}}\]!%]\s)[-+]\s?)?[$€£]?(?!(?<=\d)\d)"
    rf"(?:\d{{1,9}} \d{{1,9}}/\d{{1,9}}|{_WRITTEN})(?![\d/])",
    re.ASCII,
)
_EQUALS = re.compile(r"(?<![<>!])=|\u2248|\\(?:approx|implies|Rightarrow|rightarrow|to)(?![A-Za-z])")
_APPROXIMATELY = re.compile(r"\u2248|\\approx(?![A-Za-z])")
_OPERATOR_BEFORE = re.compile(
    r"(?:[*/^\u00d7\u00f7\u00b7+\u00b1_]|(?<![-=])>=?|<=?|[\u2264\u2265\u2260]|!=|\\(?:[lg](?:eq?|eqslant|t)|neq?)"
    r"|\d:|\d\s?[x\u00d7]|\\(?:times|cdot|div|pm)|[\d)}\]!%]\s?-)[\s({$]*\Z"
)
_OPERATOR_AFTER = re.compile(
    r"[\s)}]*(?:[*+\u00d7\u00f7\u00b7]\s*[\d(\\$.a-z]|x\s?\d|-\s?[\d(\\$.]|/\s*[\d(\\]|[\^!_]|:\d|\\(?:times|cdot|div|pm))"
    r"|\(\s*-?\d|(?:st|nd|rd|th)\b"
)
_BASE_TEN = re.compile(r"_\{?10\}?(?!\d)")
_PERCENT = re.compile(r"\s*(?:\\?%|percent\b|pct\b)")
_POWER_OF_UNIT = re.compile(r"\d[^\d^]{0,30}[A-Za-z]\s?\^\s?\{?\s?-?\Z")
_LABEL = re.compile(
    r"(?i)\b(?:pages?|p\.|steps?|questions?|problems?|chapters?|exercises?|examples?|figures?|fig\.|lines?|sections?|tables?"
    r"|equations?|footnotes?|lemmas?|theorems?)\s*[(#]?\Z"
)
_WITH_UNIT = re.compile(
    r"(?>(?:(?!(?<=\})\s*+\{?[23])[\s)}\]])*)"
    r"(?>(?:(?<=[A-Za-z}])\^?\s*+\{?[23]\}?|[A-Za-z%\u00b0\u00a2., '()/{}\u00b2\u00b3-])*)"
)
_WORDS = re.compile(r"(?<!\\)\b[A-Za-z]{3,}|[^\W\d_A-Za-z\u0370-\u03ff]")
_HEDGE = re.compile(
    r"(?i)\b(?:could|might|may) (?:also )?be\b(?=\W*\d)|\b(?:maybe|perhaps|possibly|not sure|either|guess(?:ing)?)\b"
)
_EITHER = re.compile(r"\d[^\d\n]{0,20}\bor\b[^\d\n]{0,20}\d")
_OF_THE_QUESTION = re.compile(
    r"(?i)\b(?:(?:in|from|of) (?:the|this) (?:question|problem|task|prompt|text)|(?:is|was|are|were) given)\b"
)


def number_verdict(reference: str, final: FinalAnswer) -> Verdict:
    """The verdict on answers whose value is that of `reference`, a plain number, perhaps in another unit.

    `unparsed` if one of them is no number itself: `19 - 10` for 9, as the question may be to compute it, `5!`, `101_2`,
    "8th", "page 9", "it could be 9". `wrong` if a text offers several numbers; else `correct`.
    """
    expected = plain_number(reference) or ""
    if final.kind == "free":
        return _free_verdict(expected, final.texts[0])
    wanted = [(first_number(text) or "") if are_measures(reference, text) else expected for text in final.texts]
    return "correct" if all(map(_gives, final.texts, wanted)) else "unparsed"


def first_number(text: str) -> str | None:
    """The number at the beginning of a text, as `plain_number` gives it; None if there is none."""
    token = _TOKEN.match(bare_text(with_divisions(text)))
    return any_number(token.group()) if token else None


def _gives(text: str, reference: str) -> bool:
    r"""Whether a boxed or stated text gives the number: `19`, `x = 19`, `12 + 7 = 19`, `19\text{ cm}`, "19 of 20"."""
    if text == reference:
        return True
    if _HEDGE.search(text):
        return False
    if (number := plain_number(text) or plain_number(bare_text(text))) is not None:
        return not is_division(number) or is_division(reference)
    text = _written_alike(text, reference)
    if any(_is_number(side, reference) for side in _EQUALS.split(text)):
        return True
    text = bare_text(text)
    return bool(_WORDS.search(text)) and any(_stands_alone(text, token, reference) for token in _TOKEN.finditer(text))


def _is_number(side: str, reference: str) -> bool:
    """Whether a side of an equation is nothing but the number and perhaps a unit."""
    side = bare_text(side).strip("()[]{},\"'` ")
    if (token := _TOKEN.match(side)) is None:
        return False
    rest = side[token.end() :]
    return bool(_WITH_UNIT.fullmatch(rest) or _BASE_TEN.fullmatch(rest)) and _stands_alone(side, token, reference)


def _free_verdict(reference: str, text: str) -> Verdict:
    """The verdict on a text that states no answer: its last number counts, if it stands alone in its sentence."""
    if text.endswith("?"):
        return "unparsed"  # a question gives no answer
    text = _written_alike(text, reference)
    ends = [0, *(match.start() for match in SENTENCE_END.finditer(text)), len(text)]
    sentences = [text[start:end] for start, end in pairwise(ends)]
    sentence = next((bare_text(sentence) for sentence in reversed(sentences) if re.search(r"\d", sentence)), "")
    if _EITHER.search(sentence):
        return "wrong"
    if _HEDGE.search(sentence) or _OF_THE_QUESTION.search(sentence):
        return "unparsed"
    tokens = [
        (part, [token for token in _TOKEN.finditer(part) if not _POWER_OF_UNIT.search(part[: token.start()][-40:])])
        for part in _APPROXIMATELY.split(sentence)
    ]
    stands = any(_stands_alone(part, own[-1], reference, reduced=True) for part, own in tokens if own)
    return "correct" if stands else "unparsed"


def _written_alike(text: str, reference: str) -> str:
    r"""The text with `\frac{3}{4}` as `3/4` and, where the reference is 1.22, `1,22` as 1.22."""
    return with_divisions(text.replace(reference.replace(".", ","), reference) if "." in reference else text)


_MIXED = re.compile(r"\s?([A-Za-z]+),?\s(?:and\s)?\d+(?:\.\d+)?\s?([A-Za-z]+)")


def _is_mixed_measure(after: str) -> bool:
    """Whether a number goes on in a smaller unit: the 12 of "12 feet 3 inches"."""
    mixed = _MIXED.match(after)
    return mixed is not None and measures(mixed.group(1)) and measures(mixed.group(2))


def _stands_alone(text: str, token: re.Match[str], reference: str, reduced: bool = False) -> bool:
    """Whether it has the reference's value (`reduced`: and is in lowest terms), and is no operand, ordinal or label."""
    before, after = text[: token.start()], text[token.end() :]
    if _OPERATOR_BEFORE.search(before) or _LABEL.search(before) or CHANGES_BEFORE.search(before[-60:]):
        return False
    if "." not in reference and APPROXIMATELY_BEFORE.search(before[-30:]):
        return False  # "about 12" is no count; a reference with decimals is rounded itself
    if changes_after(after) or _is_mixed_measure(after):
        return False
    if _OPERATOR_AFTER.match(after) and not _BASE_TEN.match(after):
        return False
    number = any_number(token.group().strip())
    if number is None or (is_division(number, reduced) and not is_division(reference)):
        return False
    sizes = number.lstrip("-"), reference.lstrip("-")  # a dash before a number may be a mark
    is_same = same_number(*sizes) is not False
    if not _PERCENT.match(after):
        return is_same
    # `40%` answers 0.4 and 40. 0.4 rather is a share, and `0.4%` does not answer it.
    share, value = (number_value(sizes[0]) or Fraction(0)) / 100, number_value(reference)
    is_same &= value is not None and (value == 0 or abs(value) >= 1)
    return is_same or same_number(f"{share.numerator}/{share.denominator}", sizes[1]) is not False
