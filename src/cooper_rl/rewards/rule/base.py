"""The protocol of rules: a rule gives verdicts on completions and says which reference answers it can work with."""

from collections.abc import Callable, Sequence
from typing import Protocol

from cooper_rl.data.problem import Problem
from cooper_rl.data.text import has_content
from cooper_rl.data.validation import boxed
from cooper_rl.rewards.rule.verdict import Verdict

Asked = tuple[Problem, str]
"""A problem and the text of one completion."""


class Rule(Protocol):
    """Decides whether completions are right. Safe to use from several threads."""

    def verify_problems(self, asked: Sequence[Asked], /) -> list[Verdict]:
        """One verdict for each completion, in order."""
        ...

    def fault(self, problem: Problem, answer: str) -> str | None:
        """Why `answer` cannot be the reference answer of `problem`; None if it can.

        The text continues a message that begins with the answer: "does not verify against itself".
        """
        ...

    def close(self) -> None:
        """Release processes and threads. Later calls start them again."""
        ...


class RuleConfig(Protocol):
    """Settings of a rule."""

    def build(self) -> Rule: ...


class ComputedRule:
    """A rule that computes each verdict in this process, from nothing but the problem and the completion's text.

    `objection(problem)` says why the rule cannot read a problem's reference; None if it can.
    """

    def __init__(
        self, verdict: Callable[[Problem, str], Verdict], objection: Callable[[Problem], str | None] | None = None
    ) -> None:
        self._verdict = verdict
        self._objection = objection

    def verify_problems(self, asked: Sequence[Asked], /) -> list[Verdict]:
        """See `Rule`."""
        return ["wrong" if copies_question(*one) else self._verdict(*one) for one in asked]

    def fault(self, problem: Problem, answer: str) -> str | None:
        """See `Rule`. The answer in a box must be correct."""
        if self._objection is not None and (objection := self._objection(problem)) is not None:
            return objection
        return unverified(self._verdict(problem, boxed(answer)))

    def close(self) -> None:
        """There is nothing to release."""


def copies_question(problem: Problem, text: str) -> bool:
    """Whether a completion is the question again and nothing else."""
    return has_content(text) and _letters_of(text) == _letters_of(problem.question)


def _letters_of(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .?!:*")


def unverified(verdict: Verdict) -> str | None:
    """The fault of a reference answer whose verdict against itself is `verdict`; None if that is `correct`."""
    return None if verdict == "correct" else f"does not verify against itself (verdict: {verdict})"
