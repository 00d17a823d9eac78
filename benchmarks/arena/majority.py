"""No labels: the group's most frequent answer counts as right, alone (TTRL, arXiv 2504.16084) or where the reward model
agrees (after CoVerRL, arXiv 2603.17775)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict
from cooper_lab.arithmetic.answers import read_answer
from cooper_lab.arithmetic.solutions import find_answer
from cooper_rl import Config, RewardConfig, Scores
from cooper_verify.rules.rule import Rule

if TYPE_CHECKING:
    from fractions import Fraction

    from cooper_rl import StepContext


class MajorityRule(Config):
    """The rule of the embedded world without references: `correct` states the value that most completions of the same
    problem state, among those judged together. Between equally frequent values the earlier one wins.

    It judges no completion by itself, so accuracies on test problems by this rule mean nothing; gold does.
    """

    def build(self) -> Rule:
        return _Majority()


class _Majority(Rule):
    compares_answers = True

    def verify_problems(self, problems_and_texts: Sequence[tuple[Problem, str]], /) -> list[Verdict]:
        values = [_value(text) for _, text in problems_and_texts]
        counts: dict[str, Counter[Fraction]] = {}
        for (problem, _), value in zip(problems_and_texts, values, strict=True):
            counts.setdefault(problem.id, Counter()).update([] if value is None else [value])
        most = {name: votes.most_common(1)[0][0] for name, votes in counts.items() if votes}
        return [
            "unparsed" if value is None else "correct" if value == most[problem.id] else "wrong"
            for (problem, _), value in zip(problems_and_texts, values, strict=True)
        ]


class ConfirmedRule(RewardConfig):
    """The rule's verdict in the groups whose accepted answers the reward model accepts on average (logit above 0);
    elsewhere there is no opinion."""

    metric_names: ClassVar[tuple[str, ...]] = ("confirmed/groups",)
    compares_answers: ClassVar[bool] = True
    reads_model: ClassVar[bool] = True

    def score(self, context: StepContext) -> Scores:
        """Rewards of 0, 1 or NaN. The metric `confirmed/groups` is the share of groups that are paid."""
        paid, confirmed = [], 0
        for verdicts, logits in zip(context.correct.rows(), context.logits.rows(), strict=True):
            accepted = [logit for verdict, logit in zip(verdicts, logits, strict=True) if verdict == 1]
            confirms = sum(accepted) > 0
            confirmed += confirms
            paid += verdicts if confirms else [math.nan] * len(verdicts)
        metrics = {"confirmed/groups": confirmed / max(1, len(context.sizes))}
        return Scores(context.ragged(paid), {"rule": context.correct, **context.model_parts}, metrics)


def _value(text: str) -> Fraction | None:
    return read_answer(find_answer(text).text)
