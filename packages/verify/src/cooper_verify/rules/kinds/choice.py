"""The rule for multiple choice: an answer is right if it gives the option's letter, or its text if that is known."""

from collections.abc import Sequence
from typing import Literal

from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict
from cooper_verify.rules.answer.extraction import reference_text
from cooper_verify.rules.rule import RULES, ComputedConfig
from cooper_verify.rules.text.plain_text import plain_text
from cooper_verify.rules.verdicts.options import (
    OPTION_FIELDS,
    Choice,
    choice_verdict,
    options_of,
    reference_choice,
)


@RULES.register
class ChoiceRule(ComputedConfig):
    """Multiple choice. The reference is a letter (`B`, `(b)`, `B) apple`, `A, C`) or the text of a listed option.

    Options are read from the question ("A) apple B) pear") or from the problem's metadata (`options` or `choices`).
    """

    kind: Literal["choice"] = "choice"

    def fields(self) -> Sequence[str]:
        return OPTION_FIELDS

    def verdict(self, problem: Problem, text: str) -> Verdict:
        reference = _reference(problem)
        return (
            "unparsed" if reference is None else choice_verdict(reference, text, options_of(problem), problem.question)
        )

    def objection(self, problem: Problem) -> str | None:
        if _reference(problem):
            return None
        return "names no option: it is neither a letter nor the text of an option in the question or the metadata"


def _reference(problem: Problem) -> Choice | None:
    """The reference, which is a choice or the text of an option; None if it names no option."""
    reference = reference_text(problem.answer)
    plain = plain_text(reference)
    named = (Choice((letter,)) for letter, text in options_of(problem).items() if text == plain)
    return reference_choice(reference) or next(named, None)
