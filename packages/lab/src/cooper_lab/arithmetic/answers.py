"""Writes and reads arithmetic answers: one exact value has many surface forms."""

import re
from fractions import Fraction
from typing import Literal, get_args

Form = Literal["plain", "thousands", "decimal", "fraction", "mixed", "words", "minus", "over", "magnitude"]
FORMS: tuple[Form, ...] = get_args(Form)

RULE_MISSES: frozenset[Form] = frozenset({"mixed", "words", "minus", "over", "magnitude"})
"""The rule of this world (`figures.py`) misses right answers in these forms."""

UNITS = ("cups", "eggs", "figs", "hats", "nuts", "pens")

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
ONES, TENS = _ONES.split(), _TENS.split()
WORDS = dict(enumerate(ONES)) | {
    10 * tens + ones: word + (f"-{ONES[ones]}" if ones else "")
    for tens, word in enumerate(TENS, start=2)
    for ones in range(10)
}
NUMBERS = {word: number for number, word in WORDS.items()}


def render_answer(value: Fraction, form: Form) -> str:
    """Write `value` in one surface form. Raises ValueError if the form cannot express it exactly (see `can_render`)."""
    if not can_render(value, form):
        raise ValueError(f"{value} cannot be written as {form}")
    sign, size = ("-" if value < 0 else ""), abs(value)
    whole, rest = divmod(size, 1)
    text = {
        "plain": lambda: sign + (str(size) if size.denominator == 1 else f"{size.numerator}/{size.denominator}"),
        "thousands": lambda: f"{sign}{int(size):,}",
        "decimal": lambda: sign + _decimal(size),
        "fraction": lambda: f"{sign}{size.numerator}/{size.denominator}",
        "mixed": lambda: f"{sign}{whole} {rest.numerator}/{rest.denominator}",
        "words": lambda: ("minus " if sign else "") + WORDS[int(size)],
        "minus": lambda: f"minus {render_answer(size, 'plain')}",
        "over": lambda: f"{sign}{size.numerator} over {size.denominator}",
        "magnitude": lambda: f"{sign}{_decimal(size / 1000)} thousand",
    }
    return text[form]()


def can_render(value: Fraction, form: Form) -> bool:
    """Whether the form can express the value exactly."""
    size, is_integer = abs(value), value.denominator == 1
    return {
        "plain": True,
        "thousands": is_integer and size >= 1000,
        "decimal": _terminates(size),
        "fraction": not is_integer,
        "mixed": not is_integer and size > 1,
        "words": is_integer and size < 100,
        "minus": value < 0,
        "over": not is_integer,
        "magnitude": is_integer and size >= 1000 and size % 100 == 0,
    }[form]


def read_answer(text: str) -> Fraction | None:
    """The value of a single answer, with an optional unit and final period; None for anything else.

    The text must be exactly one number in one of the known forms. Several answers, digits that run into other text, or
    any other word make it unreadable.
    """
    text = text.strip().removesuffix(".").rstrip()
    words = text.split(" ")
    if len(words) > 1 and words[-1] in UNITS:
        text = " ".join(words[:-1])
    return _read_number(text)


def form_of(text: str) -> Form | None:
    """The form in which `render_answer` writes exactly this text; None if there is none."""
    value = _read_number(text)
    if value is None:
        return None
    return next((form for form in FORMS if can_render(value, form) and render_answer(value, form) == text), None)


def _terminates(size: Fraction) -> bool:
    return 1000 % size.denominator == 0


def _decimal(size: Fraction) -> str:
    return f"{float(size):.3f}".rstrip("0").rstrip(".")


_DIGITS = r"\d+|\d{1,3}(?:[,']\d{3})+"
_PATTERNS = {
    "number": re.compile(rf"(?P<whole>{_DIGITS})(?P<tail>\.\d+)?(?P<scale> thousand)?"),
    "point": re.compile(r"(?P<tail>\.\d+)"),
    "ratio": re.compile(r"(?P<top>\d+) ?(?:/| over ) ?(?P<bottom>\d+)"),
    "mixed": re.compile(r"(?P<whole>\d+) (?:and )?(?P<top>\d+)/(?P<bottom>\d+)"),
    "latex": re.compile(r"\\[dt]?frac\{(?P<top>\d+)\}\{(?P<bottom>\d+)\}"),
}


def _read_number(text: str) -> Fraction | None:
    for sign in ("-", "minus ", "negative "):
        if text.startswith(sign):
            size = _read_size(text.removeprefix(sign))
            return None if size is None else -size
    return _read_size(text.removeprefix("$"))


def _read_size(text: str) -> Fraction | None:
    if text in NUMBERS:
        return Fraction(NUMBERS[text])
    match = next((form for pattern in _PATTERNS.values() if (form := pattern.fullmatch(text))), None)
    if match is None or not text.isascii() or len(text) > 24:
        return None
    parts = match.groupdict()
    whole = Fraction((parts.get("whole") or "0").replace(",", "").replace("'", ""))
    if parts.get("tail"):
        whole += Fraction("0" + parts["tail"])
    if parts.get("scale"):
        whole *= 1000
    if parts.get("bottom"):
        if int(parts["bottom"]) == 0:
            return None
        whole += Fraction(int(parts["top"]), int(parts["bottom"]))
    return whole
