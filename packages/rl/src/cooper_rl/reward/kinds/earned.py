"""`earned`: rule and reward model, weighted by how well the reward model agrees with the rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from cooper_rl.reward.base import REWARDS, RewardConfig, Scores

if TYPE_CHECKING:
    from cooper_rl.reward.context import StepContext

POWER = 2.0
"""How fast the weight falls with the agreement. A larger power would trust only a model that agrees nearly always."""
DECAY = 0.5
"""Decay of the counts behind J from step to step. The step being scored always counts in full, so a model that is being
hacked loses its weight in the same step."""


@REWARDS.register
class EarnedConfig(RewardConfig):
    """w * reward model + (1 - w) * rule. The weight w is earned by telling what the rule accepts from what it rejects.

    With J = the share of rule-correct completions that the model accepts minus the share of rule-wrong ones (Youden's
    J: 1 for full agreement, 0 for guessing), w = max(0, J)^2. Where the rule is silent on a whole group, w * reward
    model pays: trust is earned where the rule speaks. If it has never spoken, w is 1. An answer without a finite score
    is paid by the rule alone. There is no opinion on an answer on which the rule is silent if it judges others of its
    group and w is below 1, or if the rule alone pays.
    """

    kind: Literal["earned"] = "earned"

    @property
    def reads_model(self) -> bool:
        return True

    def build(self) -> EarnedReward:
        return EarnedReward()


class EarnedReward:
    def __init__(self) -> None:
        self._counts = [0.0] * 4
        """Decayed counts over finished steps: rule-correct, accepted of these, rule-wrong, accepted of these."""
        self._has_spoken = False
        """Whether the rule was not silent on some answer of a finished step."""

    def score(self, context: StepContext) -> Scores:
        """Rewards in [0, 1] or NaN, with the parts `rule`, `reward_model` and `logit`; the metric `earned/weight` is w.

        The evidence is that of finished steps, of these answers and of the others of their step that were scored.
        """
        weight, rule = self._weight([context, *context.others_of_step]), context.correct
        scores, by_rule = context.probabilities.flat, rule.flat.to(context.probabilities.flat.dtype)
        pays = scores.isfinite() & (weight > 0)  # 0 * NaN would be NaN
        of_model = (weight * scores).where(pays, math.nan)
        by_model = context.silent.flat & ~(context.passed_over.flat & (weight < 1))
        rewards = of_model.where(by_model, (weight * scores + (1 - weight) * by_rule).where(pays, by_rule))
        parts = {"rule": rule, **context.model_parts}
        return Scores(context.ragged(rewards), parts, {"earned/weight": weight})

    def commit(self, contexts: Sequence[StepContext]) -> None:
        """Add a finished step to the counts, however many calls scored it."""
        if contexts:
            self._counts = self._with(contexts)
            self._has_spoken |= _speaks(contexts)

    def state(self) -> list[float]:
        """The four counts, and 1 if the rule has spoken."""
        return [*self._counts, float(self._has_spoken)]

    def restore(self, state: list[float]) -> None:
        """Restore what `state` returned; an earlier version wrote the counts alone."""
        self._counts, spoken = list(state[:4]), state[4:]
        self._has_spoken = bool(spoken[0]) if spoken else any(state)

    def _weight(self, contexts: Sequence[StepContext]) -> float:
        if self._has_spoken or _speaks(contexts):
            return earned_weight(self._with(contexts))
        return 1.0

    def _with(self, contexts: Sequence[StepContext]) -> list[float]:
        """The counts after a step with these groups. A score that is not finite is no acceptance."""
        now = [0.0] * 4
        for context in contexts:
            accepts = (context.probabilities.flat > 0.5).tolist()
            verdicts = [verdict for row in context.verdicts for verdict in row]
            for accepted, verdict in zip(accepts, verdicts, strict=True):
                if verdict in ("correct", "wrong"):
                    place = 0 if verdict == "correct" else 2
                    now[place] += 1
                    now[place + 1] += accepted
        return [DECAY * before + new for before, new in zip(self._counts, now, strict=True)]


def _speaks(contexts: Sequence[StepContext]) -> bool:
    """Whether the rule has a verdict on any of these answers, be it only that it cannot read one."""
    return any(verdict != "silent" for context in contexts for row in context.verdicts for verdict in row)


def earned_weight(counts: Sequence[float]) -> float:
    """max(0, J) ^ POWER, with J = accepted / correct - accepted / wrong; 0 if less than one was correct, or wrong.

    `counts` are rule-correct completions, those of them that the model accepts, rule-wrong ones, and those of them that
    it accepts. Decayed counts below one are of completions long gone: trust is not earned by memory alone.
    """
    correct, accepted_correct, wrong, accepted_wrong = counts
    if correct < 1 or wrong < 1:
        return 0.0
    return max(0.0, accepted_correct / correct - accepted_wrong / wrong) ** POWER
