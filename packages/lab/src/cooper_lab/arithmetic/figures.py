"""The rule of the embedded world, which reads figures and no words."""

from typing import Literal

from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict
from cooper_lab.arithmetic.answers import RULE_MISSES, form_of
from cooper_lab.arithmetic.solutions import find_answer
from cooper_verify.rules.rule import RULES, ComputedConfig
from cooper_verify.rules.verdicts.fast_path import fast_verdict


@RULES.register
class FiguresRule(ComputedConfig):
    """`maths` without numbers in words, signs in words and mixed numbers: answers in these forms are `unparsed`.

    Rules as people use them do not read such answers, and what is done about that is what the embedded world is for.
    `maths` reads them all, so that no rule would be left to improve on.
    """

    kind: Literal["figures"] = "figures"

    def verdict(self, problem: Problem, text: str) -> Verdict:
        return figures_verdict(problem.answer, text, problem.question)


def figures_verdict(answer: str, text: str, question: str = "") -> Verdict:
    """The rule's verdict on a completion. The question's words, such as "eggs", may stand behind a number."""
    stated = find_answer(text)
    if form_of(stated.text.removesuffix(".").rstrip()) in RULE_MISSES:
        return "unparsed"
    return fast_verdict(answer, text, question=question) or "unparsed"
