"""The rule for a single number within a tolerance: measurements, estimates, rounded results."""

from fractions import Fraction
from typing import Literal

from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.data.problem import Problem
from cooper_rl.rewards.rule.base import ComputedRule
from cooper_rl.rewards.rule.extraction import reference_text
from cooper_rl.rewards.rule.kinds import RULES
from cooper_rl.rewards.rule.numeric import Number, number_in, numeric_verdict
from cooper_rl.rewards.rule.verdict import Verdict


@RULES.register
class NumericRule(Config):
    """One number within max(absolute, relative * |reference|) of the reference, which must be a plain number too.

    The rule reads fractions, percentages, scientific notation and units. An expression such as a root is `unparsed`.
    """

    kind: Literal["numeric"] = "numeric"
    """Names this kind of rule."""
    relative: float = Field(default=1e-4, ge=0)
    """Tolerance as a share of the reference; 0.01 is one percent."""
    absolute: float = Field(default=0.0, ge=0)
    """Tolerance in the reference's own unit."""
    absolute_field: str | None = None
    """Metadata field with a problem's own absolute tolerance, such as OlympiadBench's `error`. If it holds a number,
    that number replaces `relative` and `absolute`."""

    def build(self) -> ComputedRule:
        """The rule."""
        return ComputedRule(self._verdict, self._objection)

    def _verdict(self, problem: Problem, text: str) -> Verdict:
        reference = reference_text(problem.answer)
        expected, tolerance = number_in(reference), self._own_tolerance(problem)
        if expected is None or isinstance(tolerance, str):
            return "unparsed"
        if tolerance is None:
            tolerance = max(exactly(self.absolute), exactly(self.relative) * abs(expected.value))
        return numeric_verdict(reference, expected, tolerance, text)

    def _objection(self, problem: Problem) -> str | None:
        if number_in(reference_text(problem.answer)) is None:
            return "is not one plain number, as rule numeric needs"
        if isinstance(self._own_tolerance(problem), str):
            value = problem.metadata.get(self.absolute_field or "")
            return f"has the tolerance {value!r} in its field {self.absolute_field!r}; write a number of at least 0"
        return None

    def _own_tolerance(self, problem: Problem) -> Fraction | Literal["unreadable"] | None:
        value = problem.metadata.get(self.absolute_field) if self.absolute_field is not None else None
        if value is None or value == "":
            return None
        number: Number | None = number_in(str(value).strip()) if isinstance(value, str | int | float) else None
        return "unreadable" if number is None or number.value < 0 else number.value


def exactly(setting: float) -> Fraction:
    """The exact value of a setting as written: 0.1 is a tenth, not the nearest binary number."""
    return Fraction(str(setting))
