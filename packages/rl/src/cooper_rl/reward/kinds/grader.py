"""A reward that pays what a grader's opinion is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from cooper_rl.reward.base import Count, RewardConfig, Scores
from cooper_rl.reward.kinds.function import FunctionReward
from cooper_verify.grader import Asked, opinions_on
from cooper_verify.graders.judge import JudgeGrader
from cooper_verify.graders.written import form_of, open_grader
from cooper_verify.rules.rule import Rule

if TYPE_CHECKING:
    from cooper_base.data.problem import Problem
    from cooper_rl.reward.base import Reward
    from cooper_rl.reward.context import StepContext
    from cooper_verify.grader import Grader, Opinion


class GraderRewardConfig(RewardConfig):
    """The score that any grader gives an answer. There is no opinion where it has none, or its server failed.

    A rule pays 1 and 0, a judge and a reward model the probability that the answer is right, or 1 and 0.
    """

    kind: str
    """The grader, as every command writes it: a YAML file with `judge:` or with the rewards of a run, a reward model's
    folder (`./folder`), `file.py:function`, `file.py:Class`, `rule:KIND`, `http://host:port` of `cooper serve`, or
    `verifiers:ENVIRONMENT`."""

    @property
    def needs_reference(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the grader says. A service is taken to need one, since it is not asked before the run."""
        return self._is_service or open_grader(self.kind).reads_reference

    @property
    def compares_answers(self) -> bool:
        """As the grader says. A service may compare them."""
        return self._is_service or open_grader(self.kind).compares_answers

    def check(self) -> None:
        """Raises InputError if the judge's server or the service does not answer."""
        form = form_of(self.kind)
        if form not in ("service", "judge"):
            return
        with closing(open_grader(self.kind)) as grader:
            if isinstance(grader, JudgeGrader):
                grader.opened()

    def check_problems(self, problems: Sequence[Problem]) -> None:
        """Raises InputError if the grader cannot grade answers to one of these problems."""
        if not self._is_service:
            open_grader(self.kind).check(problems)

    def build(self) -> Reward:
        """Raises InputError for what is no grader. A function is the reward `function`: it also reads how an answer
        ended, and its messages."""
        if form_of(self.kind) == "function":
            return FunctionReward(self.kind)
        return GraderReward(self.kind)

    @property
    def _is_service(self) -> bool:
        return form_of(self.kind) == "service"


class GraderReward:
    """A grader's scores. It keeps no state, so a resumed run needs none."""

    def __init__(self, written: str) -> None:
        """Raises InputError for what is no grader. A service is connected to when it is first asked."""
        self._written = written
        self._grader: Grader | None = None if form_of(written) == "service" else open_grader(written)

    def score(self, context: StepContext) -> Scores:
        """The scores (the part `grader`), NaN where there is none: no opinion.

        Metrics: `grader/mean` of those that have a score, `grader/no_opinion`, the share of the others, and
        `grader/failures`, the number of answers for which a server gave none. The answers of a context are graded once,
        also if a reward model learns in between. Raises InputError for anything but one opinion for each answer.
        """
        opinions = context.once(self, lambda: self._opinions(context))
        paid = context.ragged([math.nan if one.score is None else one.score for one in opinions])
        heard = paid.opinions().flat
        metrics: dict[str, float] = {
            "grader/no_opinion": 1 - len(heard) / max(1, len(opinions)),
            "grader/failures": Count(sum(one.failed for one in opinions)),
        }
        return Scores(paid, {"grader": paid}, metrics | ({"grader/mean": heard.mean().item()} if len(heard) else {}))

    def close(self) -> None:
        if self._grader is not None:
            self._grader.close()

    def _opinions(self, context: StepContext) -> list[Opinion]:
        if self._grader is None:
            self._grader = open_grader(self._written)
        reads_reply = isinstance(self._grader, Rule)  # as the run's own rule does
        return opinions_on(
            self._grader,
            [
                Asked(group.problem, answer.text if reads_reply else answer.transcript)
                for group in context.groups
                for answer in group.answers
            ],
        )
