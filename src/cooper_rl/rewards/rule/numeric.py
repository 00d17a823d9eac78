"""Reads one number in an answer and checks it against a tolerance. The arithmetic is exact; there are no symbols."""

import re
from dataclasses import dataclass
from fractions import Fraction

from cooper_rl.rewards.rule.extraction import clean, extract_answer
from cooper_rl.rewards.rule.plain_number import mixed_number, plain_number, with_divisions
from cooper_rl.rewards.rule.plain_text import bare_text
from cooper_rl.rewards.rule.text_answer import is_retracted
from cooper_rl.rewards.rule.units import measures, same_unit, without_unit
from cooper_rl.rewards.rule.verdict import Verdict

_PERCENT = re.compile(r"\s*\\?%\s*\Z")
_APPROXIMATELY = re.compile(
    r"(?:[A-Za-z]\s*)?(?:\\approx|\\simeq|\u2248|\u2245|~|about|approximately|roughly)\s*", re.IGNORECASE
)
_SYMBOL = re.compile(r"(?<=\d)\s+([A-Za-z]{1,3})\Z")
_MAX_DIGITS = 60
_MAX_EXPONENT = 400


@dataclass(frozen=True)
class Number:
    """A value. `is_percentage` says whether a percent sign follows it."""

    value: Fraction
    is_percentage: bool = False


def number_in(text: str) -> Number | None:
    r"""The value of a text that is a number: `12`, `1,234`, `-3/4`, `\frac{3}{4}`, `1 1/2`, `6.02e23`, `40\%`, `5 km`.

    None for everything else, including several numbers and numbers of more than 60 digits.
    """
    text = text.strip().replace("$", "") if text.count("$") != 1 else text.strip()
    text = _APPROXIMATELY.sub("", text, count=1) if _APPROXIMATELY.match(text) else text
    is_percentage = _PERCENT.search(text) is not None
    text = with_divisions(_PERCENT.sub("", text))
    text = clean(bare_text(without_unit(text)))
    if (symbol := _SYMBOL.search(text)) and measures(symbol.group(1)):
        text = text[: symbol.start()]
    written = plain_number(text) or mixed_number(text)
    value = None if written is None else _value(written)
    return None if value is None else Number(value, is_percentage)


def numeric_verdict(reference: str, expected: Number, tolerance: Fraction, completion: str) -> Verdict:
    """The verdict on `completion`. `reference` is the text of `expected`, for its unit; `tolerance` is inclusive.

    Every candidate for the final answer must be a number within the tolerance. The verdict is `unparsed` if a candidate
    is not a number. A completion without a box or a statement counts if its last line is only a number.
    """
    final = extract_answer(completion)
    texts = [final.texts[0].strip().splitlines()[-1]] if final.kind == "free" and final.texts else list(final.texts)
    found = [number_in(clean(text)) for text in texts]
    close = [None if number is None else _is_close(number, expected, tolerance) for number in found]
    if False in close:
        return "wrong"
    if not close or None in close:
        return "unparsed"
    if is_retracted(final.after):
        return "wrong"
    return "correct" if all(same_unit(reference, text) for text in texts) else "wrong"


def _is_close(found: Number, expected: Number, tolerance: Fraction) -> bool:
    """Whether the numbers are close. `40%` matches the references 0.4 and 40: the question may ask for a percentage."""
    if abs(found.value - expected.value) <= tolerance:
        return True
    if found.is_percentage == expected.is_percentage:
        return False
    if found.is_percentage:
        return abs(found.value / 100 - expected.value) <= tolerance
    return abs(found.value - expected.value / 100) <= tolerance / 100


def _value(number: str) -> Fraction | None:
    mantissa, _, exponent = number.partition("e")
    if sum(character.isdigit() for character in mantissa) > _MAX_DIGITS or abs(int(exponent or 0)) > _MAX_EXPONENT:
        return None
    top, _, bottom = mantissa.partition("/")
    denominator = int(bottom) if bottom else 1
    return Fraction(top) / denominator * Fraction(10) ** int(exponent or 0) if denominator else None
