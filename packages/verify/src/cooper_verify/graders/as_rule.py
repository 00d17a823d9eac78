"""A grader in the place of a rule: its verdicts are the rule's."""

from collections.abc import Sequence
from threading import Lock
from typing import Any

from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict
from cooper_verify.grader import Asked, Grader, check_gives_verdicts, verdicts_on
from cooper_verify.graders.judge import JudgeGrader
from cooper_verify.graders.written import open_grader
from cooper_verify.rules.rule import ProblemAndText, Rule


class GraderAsRule(Rule):
    """A grader's verdicts as a rule's: `silent` where a server failed, so that nothing is paid or learned there."""

    def __init__(self, grader: Grader) -> None:
        """Raises InputError for a grader that gives scores and no verdicts."""
        check_gives_verdicts(grader)
        self.name, self._grader = grader.name, grader
        self._lock = Lock()

    def verify_problems(self, problems_and_texts: Sequence[ProblemAndText], /) -> list[Verdict]:
        """Raises InputError, naming grader and problem, for a score without a verdict."""
        with self._lock:  # the assistant's thread calls this too
            return verdicts_on(self._grader, [Asked(*asked) for asked in problems_and_texts])

    def settings(self) -> dict[str, Any]:
        return self._grader.settings()

    def check(self, problems: Sequence[Problem]) -> None:
        """Raises InputError if the grader cannot grade these problems, or the judge's server does not answer."""
        self._grader.check(problems)
        if isinstance(self._grader, JudgeGrader):
            self._grader.opened()

    def close(self) -> None:
        self._grader.close()


def rule_of(written: str) -> Rule:
    """The rule that judges as this grader does. Raises InputError for what is no grader, or gives no verdicts."""
    grader = open_grader(written)
    return grader if isinstance(grader, Rule) else GraderAsRule(grader)
