"""A rule that judges some problems and is silent on the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from cooper_base.config.base import Config
from cooper_base.config.user_functions import load_function
from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict
from cooper_base.errors import InputError
from cooper_verify.rules.rule import RULES, ProblemAndText, Rule, RuleConfig


@RULES.register
class PartialRule(Config):
    """Another rule, for the problems that it can judge. On all others the verdict is `silent`."""

    kind: Literal["partial"] = "partial"
    rule: Annotated[RuleConfig, RULES] = Field(default_factory=lambda: RULES.read({}))  # pyright: ignore
    """The rule that judges; by default the default rule."""
    only: str | dict[str, list[Any]]
    """The problems it may judge: the values of metadata fields (`{subject: [algebra, geometry]}`; all fields must
    fit), or `package.module:function`, a function of the problem that returns true or false."""

    def build(self) -> PartiallySilent:
        """Raises InputError if the function does not exist."""
        return PartiallySilent(self.rule.build(), _fits(self.only))


@RULES.register
class SilentRule(Config):
    """Judges nothing. A data row that names it (`rule: silent`) is a problem that no rule can check."""

    kind: Literal["silent"] = "silent"

    def build(self) -> Silent:
        return Silent()


class Silent(Rule):
    """Judges nothing."""

    def verify_problems(self, problems_and_texts: Sequence[ProblemAndText], /) -> list[Verdict]:
        return ["silent"] * len(problems_and_texts)

    def judges(self, problem: Problem) -> bool:
        return False


class PartiallySilent(Rule):
    """`rule` where `judged(problem)` is true; silence elsewhere."""

    def __init__(self, rule: Rule, judged: Callable[[Problem], bool]) -> None:
        self.rule = rule
        self._judged = judged

    def verify_problems(self, problems_and_texts: Sequence[ProblemAndText], /) -> list[Verdict]:
        judged = [self.judges(problem) for problem, _ in problems_and_texts]
        heard = iter(
            self.rule.verify_problems([pair for pair, yes in zip(problems_and_texts, judged, strict=True) if yes])
        )
        return [next(heard) if yes else "silent" for yes in judged]

    def judges(self, problem: Problem) -> bool:
        return bool(self._judged(problem)) and self.rule.judges(problem)

    def needs_verdicts(self, problem: Problem) -> bool:
        return bool(self._judged(problem)) and self.rule.needs_verdicts(problem)

    def faults(self, problems_and_texts: Sequence[ProblemAndText], /) -> list[str | None]:
        """Those of the rule; any reference will do where it is silent."""
        judged = [self.judges(problem) for problem, _ in problems_and_texts]
        faults = iter(self.rule.faults([pair for pair, yes in zip(problems_and_texts, judged, strict=True) if yes]))
        return [next(faults) if yes else None for yes in judged]

    def unread(self, problems: Sequence[Problem]) -> list[Problem]:
        return self.rule.unread([problem for problem in problems if self.judges(problem)])

    def ambiguous(self, problems: Sequence[Problem]) -> list[Problem]:
        return self.rule.ambiguous([problem for problem in problems if self.judges(problem)])

    def close(self) -> None:
        self.rule.close()


def _fits(only: str | dict[str, list[Any]]) -> Callable[[Problem], bool]:
    """Whether `only` lets a rule judge a problem. Raises InputError for a function that does not exist, and later for
    a problem that lacks a named field."""
    if isinstance(only, str):
        return load_function(only, ("problem",))

    def judged(problem: Problem) -> bool:
        for field in only:
            if field not in problem.metadata:
                fields = ", ".join(problem.metadata) or "nothing"
                raise InputError(f"rule.only.{field}: problem {problem.id} has no such metadata; it has {fields}")
        return all(problem.metadata[field] in values for field, values in only.items())

    return judged
