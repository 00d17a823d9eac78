"""Pairs that count by how wrong the reward model was about them before the update."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from typing import TYPE_CHECKING

from cooper_rl import PairFilter, PairFilterConfig

if TYPE_CHECKING:
    from cooper_rl import Pair, PairInputs, RewardModel


class Weighting(PairFilterConfig):
    """Weights of pairs by the logits from before the update in which a pair is new. Each kind implements `weight`.

    An update scales the weights of its pairs, new and past, to mean 1.
    """

    @abstractmethod
    def weight(self, positive_logit: float, negative_logit: float) -> float:
        """The weight, between 0 and 1."""

    def build(self, inputs: PairInputs) -> WeightingFilter:
        return WeightingFilter(self)


class Misranked(Weighting):
    """1 - sigmoid(positive logit - negative logit): how wrong the order was."""

    def weight(self, positive_logit: float, negative_logit: float) -> float:
        return _sigmoid(negative_logit - positive_logit)


class Overpaid(Weighting):
    """sigmoid(negative logit): the reward that the wrong completion got."""

    def weight(self, positive_logit: float, negative_logit: float) -> float:
        return _sigmoid(negative_logit)


class WeightingFilter(PairFilter):
    """Keeps all pairs. Ties keep their weight."""

    def __init__(self, config: Weighting) -> None:
        self._config = config

    def filter(self, pairs: Sequence[Pair], model: RewardModel) -> tuple[list[Pair], dict[str, float]]:
        from cooper_rl.reward.update import with_logits  # noqa: PLC0415 - configuration records do without torch

        scored = with_logits(pairs, model)
        return [self._weighted(pair) if pair.label == "better" else pair for pair in scored], {}

    def _weighted(self, pair: Pair) -> Pair:
        logits = pair.positive_logit_before or 0.0, pair.negative_logit_before or 0.0
        return replace(pair, weight=pair.weight * self._config.weight(*logits))


def _sigmoid(logit: float) -> float:
    return 1 / (1 + exp(min(700.0, -logit)))
