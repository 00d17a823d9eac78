"""The plain rewards: the rule's verdict, a reward model's score, what an environment returned, and weighted sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cooper_rl.reward.base import (
    REWARDS,
    Closes,
    Remembers,
    Reward,
    RewardConfig,
    Scores,
    merged,
    named_metrics,
    named_parts,
)

if TYPE_CHECKING:
    from cooper_rl.records import Ragged
    from cooper_rl.reward.context import StepContext


@REWARDS.register
class RuleReward(RewardConfig):
    """1 for an answer that the rule calls correct, 0 for any other. Where the rule is silent, there is no opinion."""

    kind: Literal["rule"] = "rule"

    def score(self, context: StepContext) -> Scores:
        """Rewards of 0, 1 or NaN, with the part `rule` (the reward)."""
        return Scores(context.correct, {"rule": context.correct})


@REWARDS.register
class RewardModelReward(RewardConfig):
    """The score of the run's reward model, frozen or learning, with the weights from the start of the step."""

    needs_reference: ClassVar[bool] = False  # the run's settings know whether the model reads one

    reads_model: ClassVar[bool] = True
    kind: Literal["reward_model"] = "reward_model"
    pays: Literal["probability", "logit"] = "probability"
    """`probability` is sigmoid(logit), which lies in [0, 1]. `logit` is the score itself, for a model whose scores only
    rank answers, such as one that was trained on preferences: at scores of 10 and 20 both probabilities are 1."""

    def score(self, context: StepContext) -> Scores:
        """Probabilities or logits, with both as the parts `reward_model` and `logit`."""
        rewards = context.logits if self.pays == "logit" else context.probabilities
        return Scores(rewards, context.model_parts)


class WeightedSum:
    """The sum of rewards, each times its weight. The parts and metrics of all rewards are kept.

    A reward with an opinion on no answer of a group, such as a function for problems of another kind, is left out of
    the group's sum. Otherwise an answer on which one of the rewards has no opinion has none. If two rewards use the
    same name for different parts, the later reward's index is appended (`length_2`).
    """

    def __init__(self, rewards: Sequence[Reward], weights: Sequence[float] | None = None) -> None:
        self._rewards = list(rewards)
        self._weights = list(weights) if weights is not None else [1.0] * len(self._rewards)
        self._remembering = [reward for reward in self._rewards if isinstance(reward, Remembers)]
        if not self._rewards or len(self._weights) != len(self._rewards):
            raise ValueError(f"{len(self._rewards)} rewards with {len(self._weights)} weights")

    def score(self, context: StepContext) -> Scores:
        """The weighted sum of every reward's score on the same answers."""
        scored = [reward.score(context) for reward in self._rewards]
        weighted = [(weight, score.rewards) for weight, score in zip(self._weights, scored, strict=True) if weight]
        total = _sum_of_opinions(weighted) if weighted else context.ragged([0.0] * sum(context.sizes))
        parts, metrics = {}, {}
        for place, (reward, scores) in enumerate(zip(self._rewards, scored, strict=True), 1):
            named = named_parts(reward, scores.parts, context.computed)
            parts = merged(parts, {name: part for name, part in named.items() if parts.get(name) is not part}, place)
            metrics = merged(metrics, named_metrics(reward, scores.metrics), place)
        return Scores(total, parts, metrics, tuple(weighted))

    def commit(self, contexts: Sequence[StepContext]) -> None:
        for reward in self._remembering:
            reward.commit(contexts)

    def state(self) -> list[Any]:
        """The states of the rewards that keep state, in order."""
        return [reward.state() for reward in self._remembering]

    def restore(self, state: list[Any]) -> None:
        for reward, own in zip(self._remembering, state, strict=True):
            reward.restore(own)

    def close(self) -> None:
        for reward in self._rewards:
            if isinstance(reward, Closes):
                reward.close()


def _sum_of_opinions(weighted: Sequence[tuple[float, Ragged]]) -> Ragged:
    """The sum for each answer, each reward times its weight; NaN on which a reward has no opinion, unless it has none
    on the whole group. Then it is left out of the group's sum, which is NaN if every reward is left out."""
    first = weighted[0][1]
    total = first.flat.new_zeros(len(first.flat))
    anybody = total > 0
    for weight, rewards in weighted:
        heard = ~rewards.flat.isnan()
        of_group = rewards.expand(rewards.like(heard.float()).amax() > 0)
        anybody = anybody | of_group
        total = total + weight * rewards.flat.where(of_group, 0.0)
    return first.like(total.where(anybody, math.nan))


def build_sum(configs: Sequence[Any]) -> WeightedSum:
    """The sum of the rewards that these records describe, with their weights."""
    return WeightedSum([config.build() for config in configs], [getattr(config, "weight", 1.0) for config in configs])
