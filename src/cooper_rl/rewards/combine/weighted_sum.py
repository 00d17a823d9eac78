"""Several rewards added up."""

from collections.abc import Sequence

import torch

from cooper_rl.rewards.base import Reward, Scores
from cooper_rl.rollouts.answers import AnswerGroup


class WeightedSum:
    """The sum of rewards, each times its weight; parts and metrics of all are kept.

    Where two rewards use the same part name the later one has its index appended (`length_2`).
    """

    def __init__(self, rewards: Sequence[Reward], weights: Sequence[float] | None = None) -> None:
        self._rewards = list(rewards)
        self._weights = list(weights) if weights is not None else [1.0] * len(self._rewards)
        if not self._rewards or len(self._weights) != len(self._rewards):
            raise ValueError(f"{len(self._rewards)} rewards with {len(self._weights)} weights")

    def score(self, groups: Sequence[AnswerGroup]) -> Scores:
        """Every reward scores the same groups."""
        scored = [reward.score(groups) for reward in self._rewards]
        total = torch.zeros_like(scored[0].rewards)
        for weight, scores in zip(self._weights, scored, strict=True):
            total = total + weight * scores.rewards
        parts, metrics = {}, {}
        for index, scores in enumerate(scored, 1):
            parts |= {f"{name}_{index}" if name in parts else name: part for name, part in scores.parts.items()}
            metrics |= {f"{name}_{index}" if name in metrics else name: value for name, value in scores.metrics.items()}
        return Scores(total, parts, metrics)
