"""The rule for answers in words: an answer is right if its text is the same, whatever its formatting."""

from typing import Literal

from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict
from cooper_verify.rules.answer.extraction import reference_text
from cooper_verify.rules.rule import RULES, ComputedConfig
from cooper_verify.rules.verdicts.texts import exact_verdict


@RULES.register
class ExactRule(ComputedConfig):
    """The same text, whatever its case, LaTeX or punctuation. `0.5` does not equal `1/2`, and `A` is not an option."""

    kind: Literal["exact"] = "exact"

    def verdict(self, problem: Problem, text: str) -> Verdict:
        return exact_verdict(reference_text(problem.answer), text, problem.question)
