"""A rule gives verdicts on completions and says which reference answers it can work with."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from cooper_rl.config.base import Config, Kinds
from cooper_rl.data.problem import Problem
from cooper_rl.data.text import boxed, has_content

if TYPE_CHECKING:
    from cooper_rl.rollouts import AnswerGroup

Verdict = Literal["correct", "wrong", "unparsed", "timeout"]
"""`correct`: the final answer equals the reference. `wrong`: it does not, or the completion gives several answers.
`unparsed`: no readable answer was found. `timeout`: checking needed too much CPU time or memory."""

UserVerdict = Literal["correct", "wrong", "unparsed"]
"""The verdicts that a user-written rule may return."""

Asked = tuple[Problem, str]
"""A problem and the text of one completion."""


class Rule(Protocol):
    """Decides whether completions are right. Safe to use from several threads.

    A subclass must have `verify_problems`; it then accepts any reference answer and has nothing to close.
    """

    def verify_problems(self, asked: Sequence[Asked], /) -> list[Verdict]:
        """One verdict for each completion, in order."""
        ...

    def verify_groups(self, groups: "Sequence[AnswerGroup]") -> list[list[Verdict]]:
        """Verdicts on every completion of every group."""
        verdicts = iter(self.verify_problems([(g.problem, answer.text) for g in groups for answer in g.answers]))
        return [[next(verdicts) for _ in group.answers] for group in groups]

    def rule_name(self, problem: Problem) -> str:
        """The name under which metrics count the problem's verdicts."""
        return problem.rule or type(self).__name__

    def fault(self, problem: Problem, answer: str) -> str | None:
        """Why `answer` cannot be the reference answer of `problem`; None if it can.

        The text continues a message that begins with the answer: "does not verify against itself".
        """
        return None

    def close(self) -> None:
        """Release processes and threads. Later calls start them again."""
        return


class RuleConfig(Protocol):
    """Settings of a rule."""

    def build(self) -> Rule: ...


def _function_rule() -> type[Config]:
    from cooper_rl.rules.kinds.function import FunctionRule  # noqa: PLC0415 - only if a configuration names one

    return FunctionRule


RULES = Kinds("rule", "cooper_rl.rules.kinds", ["build"], default="maths", of_function=_function_rule)


class OneRule(Config):
    """A single rule, as a command-line option describes it."""

    rule: Annotated[RuleConfig, RULES]
    """The rule."""


class ComputedRule(Rule):
    """A rule that computes each verdict in this process, from nothing but the problem and the completion's text.

    `objection(problem)` says why the rule cannot read a problem's reference; None if it can.
    """

    def __init__(
        self, verdict: Callable[[Problem, str], Verdict], objection: Callable[[Problem], str | None] | None = None
    ) -> None:
        self._verdict = verdict
        self._objection = objection

    def verify_problems(self, asked: Sequence[Asked], /) -> list[Verdict]:
        """The question again is `wrong`."""
        return ["wrong" if copies_question(*one) else self._verdict(*one) for one in asked]

    def fault(self, problem: Problem, answer: str) -> str | None:
        """The objection, if there is one; otherwise the answer in a box must be correct."""
        if self._objection is not None and (objection := self._objection(problem)) is not None:
            return objection
        return unverified(self._verdict(problem, boxed(answer)))


def copies_question(problem: Problem, text: str) -> bool:
    """Whether a completion is the question again and nothing else."""
    return has_content(text) and _letters_of(text) == _letters_of(problem.question)


def _letters_of(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .?!:*")


def unverified(verdict: Verdict) -> str | None:
    """The fault of a reference answer whose verdict against itself is `verdict`; None if that is `correct`."""
    return None if verdict == "correct" else f"does not verify against itself (verdict: {verdict})"
