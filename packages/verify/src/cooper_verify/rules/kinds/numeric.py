"""The rule for a single number within a tolerance: measurements, estimates, rounded results."""

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from pydantic import Field

from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict
from cooper_verify.rules.answer.extraction import clean, extract_answer, reference_text
from cooper_verify.rules.asked.words import Words
from cooper_verify.rules.quantities.number import any_number, number_value, with_divisions
from cooper_verify.rules.quantities.units import compare_units, is_unit, unit_of, with_kelvins, without_unit
from cooper_verify.rules.rule import RULES, ComputedConfig
from cooper_verify.rules.text.plain_text import bare_text

_PERCENT = re.compile(r"(?:(?<!\s)\s++)?\\?%\s*+\Z")
_APPROXIMATELY = re.compile(
    r"(?:[A-Za-z]\s*)?(?:\\approx|\\simeq|\u2248|\u2245|~|about|approximately|roughly)\s*", re.IGNORECASE
)
_SYMBOL = re.compile(r"(?<=\d)\s+([A-Za-z]{1,3})\Z")
_MAX_EXPONENT = 400


@RULES.register
class NumericRule(ComputedConfig):
    """One number within max(absolute, relative * |reference|) of the reference, which must be a plain number too.

    The rule reads fractions, percentages, scientific notation and units. An expression such as a root is `unparsed`.
    """

    kind: Literal["numeric"] = "numeric"
    relative: float = Field(default=1e-4, ge=0)
    """Tolerance as a share of the reference; 0.01 is one percent."""
    absolute: float = Field(default=0.0, ge=0)
    """Tolerance in the reference's own unit."""
    absolute_field: str | None = None
    """Metadata field with a problem's own absolute tolerance, such as OlympiadBench's `error`. If it holds a number,
    that number replaces `relative` and `absolute`."""

    def fields(self) -> Sequence[str]:
        return () if self.absolute_field is None else (self.absolute_field,)

    def verdict(self, problem: Problem, text: str) -> Verdict:
        """Every candidate for the answer must be within the tolerance, which is inclusive."""
        expected = self._expected(problem)
        final = extract_answer(text)
        words = Words(problem.question, problem.answer, *final.counted)
        if isinstance(expected, str) or not final.texts or not words.know(final.words):
            return "unparsed"
        texts = [with_kelvins(clean(text), reference_text(problem.answer)) for text in final.texts]
        found = [*map(number_in, texts)]
        close = [None if number is None else _is_close(number, *expected) for number in found]
        if not all(close):
            return "wrong" if False in close else "unparsed"
        reference = unit_of(reference_text(problem.answer))
        units = {compare_units(reference, unit_of(text)) for text in texts}
        if units <= {"same"}:
            is_known = words.know(word for text in texts for word in unit_of(text).words)
            return "correct" if is_known else "unparsed"
        return "unparsed" if "unknown" in units else "wrong"

    def objection(self, problem: Problem) -> str | None:
        expected = self._expected(problem)
        return expected if isinstance(expected, str) else None

    def _expected(self, problem: Problem) -> "tuple[Number, Fraction] | str":
        """The reference and the tolerance, or why they cannot be read."""
        expected = number_in(reference_text(problem.answer))
        if expected is None:
            return "is not one plain number, as rule numeric needs"
        own = problem.metadata.get(self.absolute_field) if self.absolute_field is not None else None
        if own is None or own == "":  # as settings are written: 0.1 is a tenth, not the nearest binary number
            return expected, max(Fraction(str(self.absolute)), Fraction(str(self.relative)) * abs(expected.value))
        tolerance = number_in(str(own).strip()) if isinstance(own, str | int | float) else None
        if tolerance is None or tolerance.value < 0:
            return f"has the tolerance {own!r} in its field {self.absolute_field!r}; write a number of at least 0"
        return expected, tolerance.value


class Number(NamedTuple):
    value: Fraction
    is_percentage: bool


def number_in(text: str) -> Number | None:
    r"""The value of `12`, `1,234`, `\frac{3}{4}`, `1 1/2`, `6.02e23`, `40\%`, `5 km`; None for all else."""
    text = text.strip() if text.count("$") == 1 else text.strip().replace("$", "")
    text = text[approximately.end() :] if (approximately := _APPROXIMATELY.match(text)) else text
    is_percentage = _PERCENT.search(text) is not None
    text = with_divisions(_PERCENT.sub("", text))
    text = clean(bare_text(without_unit(text)))
    if (symbol := _SYMBOL.search(text)) and is_unit(f" {symbol.group(1)}"):
        text = text[: symbol.start()]
    mantissa, _, exponent = (any_number(text) or "0/0").partition("e")
    value, power = number_value(mantissa), int(exponent or 0)
    if value is None or abs(power) > _MAX_EXPONENT:
        return None
    return Number(value * Fraction(10) ** power, is_percentage)


def _is_close(found: Number, expected: Number, tolerance: Fraction) -> bool:
    """Whether the numbers are close. `40%` matches the references 0.4 and 40: the question may ask for a percentage."""
    distance = abs(found.value - expected.value)
    if distance > tolerance and found.is_percentage != expected.is_percentage:
        in_hundredths, plain = (found, expected) if found.is_percentage else (expected, found)
        distance = abs(in_hundredths.value / 100 - plain.value)
        tolerance = tolerance if found.is_percentage else tolerance / 100
    return distance <= tolerance
