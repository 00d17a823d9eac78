"""The rule for multiple choice: the option's letter, or its text if the problem lists the options."""

from typing import Literal

from cooper_rl.config.base import Config
from cooper_rl.data.problem import Problem
from cooper_rl.rewards.rule.base import ComputedRule
from cooper_rl.rewards.rule.choice import choice_verdict, reference_choice
from cooper_rl.rewards.rule.extraction import reference_text
from cooper_rl.rewards.rule.kinds import RULES
from cooper_rl.rewards.rule.options import Options, options_of
from cooper_rl.rewards.rule.plain_text import plain_text
from cooper_rl.rewards.rule.verdict import Verdict


@RULES.register
class ChoiceRule(Config):
    """Multiple choice. The reference is a letter (`B`, `(b)`, `B) apple`, `A, C`) or the text of a listed option.

    Options are read from the question ("A) apple B) pear") or from the problem's metadata (`options` or `choices`).
    """

    kind: Literal["choice"] = "choice"
    """Names this kind of rule."""

    def build(self) -> ComputedRule:
        """The rule. It has no settings."""
        return ComputedRule(_verdict, _objection)


def _verdict(problem: Problem, text: str) -> Verdict:
    options = options_of(problem)
    reference = _letters(reference_text(problem.answer), options)
    return "unparsed" if reference is None else choice_verdict(reference, text, options)


def _objection(problem: Problem) -> str | None:
    if _letters(reference_text(problem.answer), options_of(problem)) is None:
        return "names no option: it is neither a letter nor the text of an option in the question or the metadata"
    return None


def _letters(reference: str, options: Options) -> str | None:
    """The reference as `choice_verdict` reads it; None if it names no option."""
    if reference_choice(reference) is not None:
        return reference
    named = [letter for letter, text in options.items() if text == plain_text(reference)]
    return named[0] if named else None
