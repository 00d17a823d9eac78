"""The rule for answers that are compared as text."""

from typing import Literal

from cooper_rl.config.base import Config
from cooper_rl.data.problem import Problem
from cooper_rl.rewards.rule.base import ComputedRule
from cooper_rl.rewards.rule.exact import exact_verdict
from cooper_rl.rewards.rule.extraction import reference_text
from cooper_rl.rewards.rule.kinds import RULES
from cooper_rl.rewards.rule.verdict import Verdict


@RULES.register
class ExactRule(Config):
    """The same text, whatever its case, LaTeX or punctuation. `0.5` does not equal `1/2`, and `A` is not an option."""

    kind: Literal["exact"] = "exact"
    """Names this kind of rule."""

    def build(self) -> ComputedRule:
        """The rule. It has no settings."""
        return ComputedRule(_verdict)


def _verdict(problem: Problem, text: str) -> Verdict:
    reference = reference_text(problem.answer)
    return exact_verdict(reference, text) if reference else "unparsed"
