"""HERO: the rule decides the band, the reward model the place inside it.

Hybrid Reinforcement: When Reward Is Sparse, It's Better to Be Dense (arXiv 2510.07242), equations 3 to 5.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from cooper_rl.rewards.base import Scores
from cooper_rl.rewards.config import HybridConfig
from cooper_rl.rewards.model.reward import RewardModelReward
from cooper_rl.rewards.rule.reward import RuleReward
from cooper_rl.rollouts.answers import AnswerGroup


def stratified(
    scores: Float[Tensor, "P N"], correct: Bool[Tensor, "P N"], config: HybridConfig
) -> Float[Tensor, "P N"]:
    """Min-max normalise the reward model's scores inside each group's right and wrong completions (equation 3).

    Wrong: -alpha + 2 alpha z; right: 1 - beta + 2 beta z, with z = (s - min) / (max - min + eps). One completion
    alone in its stratum has z = 0, the bottom of its band.
    """
    z = torch.where(correct, _min_max(scores, correct, config.eps), _min_max(scores, ~correct, config.eps))
    return torch.where(correct, 1 - config.beta + 2 * config.beta * z, -config.alpha + 2 * config.alpha * z)


def difficulty_weights(sigma: Float[Tensor, "P"], sigma_mean: float, config: HybridConfig) -> Float[Tensor, "P"]:
    """w_min + (w_max - w_min) sigmoid(k (sigma - sigma_mean)), one weight a group (equation 4)."""
    return config.w_min + (config.w_max - config.w_min) * torch.sigmoid(config.k * (sigma - sigma_mean))


class HybridReward:
    """Rule and reward model combined as in HERO.

    Advantages divided by the group's standard deviation cancel the group weights, and alpha in groups without a
    right answer; use Dr. GRPO's advantages where those should count.
    """

    def __init__(self, rule: RuleReward, reward_model: RewardModelReward, config: HybridConfig) -> None:
        self._rule = rule
        self._reward_model = reward_model
        self._config = config
        self.sigma_mean: float | None = None
        """Running mean of the groups' standard deviation, to be kept in checkpoints; None before the first step."""

    def score(self, groups: Sequence[AnswerGroup]) -> Scores:
        """Weighted stratified rewards; parts `rule`, `reward_model`, `logit`, `hybrid`; metrics of both rewards.

        Standard deviations are of sigmoid(logit), which bounds them; metric `hybrid/weight` is the mean weight.
        """
        rule, model = self._rule.score(groups), self._reward_model.score(groups)
        sigma = model.rewards.std(dim=1, correction=0)
        finite = sigma[sigma.isfinite()]  # a reward model that has diverged must not stay in the running mean
        now = finite.mean().item() if len(finite) else self.sigma_mean or 0.0
        decay = self._config.sigma_decay
        self.sigma_mean = now if self.sigma_mean is None else decay * self.sigma_mean + (1 - decay) * now
        weights = difficulty_weights(sigma, self.sigma_mean, self._config)
        rewards = weights[:, None] * stratified(model.rewards, rule.rewards > 0.5, self._config)
        metrics = rule.metrics | model.metrics
        metrics |= {"hybrid/weight": weights.mean().item(), "hybrid/sigma_mean": self.sigma_mean}
        return Scores(rewards, rule.parts | model.parts | {"hybrid": rewards}, metrics)


def _min_max(scores: Float[Tensor, "P N"], members: Bool[Tensor, "P N"], eps: float) -> Float[Tensor, "P N"]:
    """z inside `members`; meaningless, but finite, outside."""
    low = scores.masked_fill(~members, torch.inf).amin(dim=1, keepdim=True)
    high = scores.masked_fill(~members, -torch.inf).amax(dim=1, keepdim=True)
    some = members.any(dim=1, keepdim=True)
    low, high = low.where(some, torch.zeros_like(low)), high.where(some, torch.zeros_like(high))
    return (scores - low) / (high - low + eps)
