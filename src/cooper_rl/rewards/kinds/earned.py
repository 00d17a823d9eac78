"""The reward model is paid attention to as far as its measured agreement with the rule goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_rl.rewards.base import REWARDS, RewardConfig, Scores

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext


@REWARDS.register
class EarnedConfig(RewardConfig):
    """w * reward model + (1 - w) * rule. The weight w is earned by telling what the rule accepts from what it rejects.

    With J = the share of rule-correct completions that the model accepts minus the share of rule-wrong ones (Youden's
    J: 1 for full agreement, 0 for guessing), w = max(0, J) ^ `power`. Where the rule is silent, w * reward model pays:
    trust is earned where the rule speaks. If it has never spoken, w is 1.
    """

    kind: Literal["earned"] = "earned"
    model: str = "main"
    """The reward model's name in `reward_models`."""
    power: float = Field(default=2.0, gt=0)
    """How fast the weight falls with the agreement. A large power trusts only a model that agrees nearly always."""
    decay: float = Field(default=0.5, ge=0, lt=1)
    """Decay of the counts behind J from step to step. The step being scored always counts in full, so a model that is
    being hacked loses its weight in the same step."""

    def reads(self) -> tuple[str, ...]:
        return (self.model,)

    def build(self) -> EarnedReward:
        return EarnedReward(self)


class EarnedReward:
    def __init__(self, config: EarnedConfig) -> None:
        self._config = config
        self._counts = [0.0] * 4
        """Decayed counts over finished steps: rule-correct, accepted of these, rule-wrong, accepted of these."""

    def score(self, context: StepContext) -> Scores:
        """Rewards in [0, 1], with the parts `rule`, `reward_model` and `logit`; the metric `earned/weight` is w."""
        counts = self._with([context])
        unheard = not any(counts) and {verdict for row in context.verdicts for verdict in row} == {"silent"}
        weight = 1.0 if unheard else earned_weight(counts, self._config.power)
        scores = context.probabilities(self._config.model).flat
        rewards = weight * scores + (1 - weight) * context.correct.flat.to(scores.dtype)
        parts = {"rule": context.correct, **context.model_parts(self._config.model)}
        return Scores(context.ragged(rewards), parts, {"earned/weight": weight})

    def commit(self, contexts: Sequence[StepContext]) -> None:
        """Add a finished step to the counts, however many calls scored it."""
        if contexts:
            self._counts = self._with(contexts)

    def state(self) -> list[float]:
        return list(self._counts)

    def restore(self, state: list[float]) -> None:
        self._counts = list(state)

    def _with(self, contexts: Sequence[StepContext]) -> list[float]:
        """The counts after a step with these groups. A score that is not finite is no acceptance."""
        now = [0.0] * 4
        for context in contexts:
            accepts = (context.probabilities(self._config.model).flat > 0.5).tolist()
            verdicts = [verdict for row in context.verdicts for verdict in row]
            for accepted, verdict in zip(accepts, verdicts, strict=True):
                if verdict in ("correct", "wrong"):
                    place = 0 if verdict == "correct" else 2
                    now[place] += 1
                    now[place + 1] += accepted
        return [self._config.decay * before + new for before, new in zip(self._counts, now, strict=True)]


def earned_weight(counts: Sequence[float], power: float) -> float:
    """max(0, J) ^ power, with J = accepted / correct - accepted / wrong; 0 if less than one was correct, or wrong.

    `counts` are rule-correct completions, those of them that the model accepts, rule-wrong ones, and those of them that
    it accepts. Decayed counts below one are of completions long gone: trust is not earned by memory alone.
    """
    correct, accepted_correct, wrong, accepted_wrong = counts
    if correct < 1 or wrong < 1:
        return 0.0
    return max(0.0, accepted_correct / correct - accepted_wrong / wrong) ** power
