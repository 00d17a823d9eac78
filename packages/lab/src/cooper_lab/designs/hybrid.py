"""HERO: the rule decides the band of a reward, the reward model decides the place inside the band.

Hybrid Reinforcement: When Reward Is Sparse, It's Better to Be Dense (arXiv 2510.07242), equations 3 to 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from jaxtyping import Bool, Float
from pydantic import Field, model_validator

from cooper_rl import RewardConfig, Scores
from cooper_rl.reward.base import REWARDS

if TYPE_CHECKING:
    from torch import Tensor

    from cooper_rl import Ragged, StepContext


@REWARDS.register
class HybridConfig(RewardConfig):
    """Bands and weights of the hybrid reward.

    The default weights are those of the paper's appendix A; its main text has 0.5, 2 and 5.
    """

    metric_names: ClassVar[tuple[str, ...]] = ("hybrid/weight", "hybrid/sigma_mean")
    reads_model: ClassVar[bool] = True
    compares_answers: ClassVar[bool] = True
    kind: Literal["hybrid"] = "hybrid"
    """The kind of reward."""
    alpha: float = Field(default=0.05, ge=0)
    """Rule-rejected completions are rewarded between -alpha and +alpha."""
    beta: float = Field(default=0.05, ge=0)
    """Rule-accepted completions are rewarded between 1 - beta and 1 + beta."""
    eps: float = Field(default=1e-6, gt=0)
    """Keeps the normalisation finite when all scores are equal."""
    w_min: float = Field(default=0.4, gt=0)
    """Weight of a group whose reward-model scores agree."""
    w_max: float = Field(default=3.0, gt=0)
    """Weight of a group whose reward-model scores differ widely."""
    k: float = Field(default=6.0, ge=0)
    """Steepness of the transition from `w_min` to `w_max`; 0 gives every group the same weight."""
    sigma_decay: float = Field(default=0.9, ge=0, lt=1)
    """Decay of the running mean of the groups' standard deviations. The paper says only "running mean"."""

    @model_validator(mode="after")
    def _bands_are_apart(self) -> Self:
        if self.alpha + self.beta >= 1:
            raise ValueError("alpha + beta must stay below 1, or a wrong answer can be rewarded above a right one")
        if self.w_min > self.w_max:
            raise ValueError("w_min exceeds w_max")
        return self

    def build(self) -> HybridReward:
        return HybridReward(self)


def stratified(
    scores: Float[Tensor, "P N"], correct: Bool[Tensor, "P N"], config: HybridConfig
) -> Float[Tensor, "P N"]:
    """Min-max normalise the reward model's scores separately among each group's right and wrong completions (eq. 3).

    Wrong: -alpha + 2 alpha z; right: 1 - beta + 2 beta z, with z = (s - min) / (max - min + eps). A completion
    that is alone in its stratum has z = 0, the bottom of its band.
    """
    z = _min_max(scores, correct, config.eps).where(correct, _min_max(scores, ~correct, config.eps))
    return (1 - config.beta + 2 * config.beta * z).where(correct, -config.alpha + 2 * config.alpha * z)


def difficulty_weights(sigma: Float[Tensor, " P"], sigma_mean: float, config: HybridConfig) -> Float[Tensor, " P"]:
    """w_min + (w_max - w_min) sigmoid(k (sigma - sigma_mean)), one weight per group (equation 4)."""
    return config.w_min + (config.w_max - config.w_min) * (config.k * (sigma - sigma_mean)).sigmoid()


class HybridReward:
    """Rule and reward model combined as in HERO.

    Advantages that are divided by the group's standard deviation cancel the group weights. In groups without a right
    answer they also cancel alpha. Use Dr. GRPO's advantages if these should count.
    """

    def __init__(self, config: HybridConfig) -> None:
        self._config = config
        self._sigma_mean: float | None = None
        """Running mean of the groups' standard deviation over finished steps; None before the first."""

    def score(self, context: StepContext) -> Scores:
        """Weighted stratified rewards, with the parts `rule`, `reward_model`, `logit` and `hybrid`. There is no opinion
        on an answer on which the rule is silent while it judges others of the group.

        Standard deviations are those of sigmoid(logit), so they are bounded. The running mean behind the weights
        includes the groups of this call, but only `commit` stores it. The metric `hybrid/weight` is the mean weight.
        """
        sigma_mean, judged = self._with([context]), ~context.passed_over.flat
        scores, rule = context.probabilities.keep(judged), context.correct.keep(judged)
        weights, rewards = [], []
        for block, correct in zip(_blocks(scores), _blocks(rule), strict=True):
            weight = difficulty_weights(block.std(dim=1, correction=0), sigma_mean, self._config)
            rewards.append(weight[:, None] * stratified(block, correct > 0.5, self._config))
            weights += weight.tolist()
        values = iter([value for block in rewards for value in block.flatten().tolist()])
        paid = context.ragged([next(values) if one else math.nan for one in judged.tolist()])
        metrics = {"hybrid/weight": sum(weights) / max(1, len(weights)), "hybrid/sigma_mean": sigma_mean}
        return Scores(paid, {"rule": context.correct, **context.model_parts, "hybrid": paid}, metrics)

    def commit(self, contexts: Sequence[StepContext]) -> None:
        """Move the running mean by one step, however many calls scored that step."""
        if contexts:
            self._sigma_mean = self._with(contexts)

    def state(self) -> float | None:
        return self._sigma_mean

    def restore(self, state: float | None) -> None:
        self._sigma_mean = state

    def _with(self, contexts: Sequence[StepContext]) -> float:
        """The running mean after a step with these groups. Non-finite scores of a diverged reward model stay out."""
        scored = [scores for context in contexts for scores in context.probabilities.groups()]
        sigmas = [scores.std(correction=0).item() for scores in scored]
        finite = [sigma for sigma in sigmas if math.isfinite(sigma)]  # fsum: the same sum in any order
        now = math.fsum(finite) / len(finite) if finite else self._sigma_mean or 0.0
        decay = self._config.sigma_decay
        return now if self._sigma_mean is None else decay * self._sigma_mean + (1 - decay) * now


def _blocks(numbers: Ragged) -> list[Tensor]:
    """Groups as the rows of one matrix or, if their sizes differ, each as a matrix of one row."""
    if len(set(numbers.sizes)) == 1:
        return [numbers.flat.reshape(len(numbers.sizes), -1)]
    return [group[None] for group in numbers.groups()]


def _min_max(scores: Float[Tensor, "P N"], members: Bool[Tensor, "P N"], eps: float) -> Float[Tensor, "P N"]:
    """z inside `members`; outside, a finite value without meaning."""
    low = scores.masked_fill(~members, math.inf).amin(dim=1, keepdim=True)
    high = scores.masked_fill(~members, -math.inf).amax(dim=1, keepdim=True)
    some = members.any(dim=1, keepdim=True)
    low, high = low.where(some, 0.0), high.where(some, 0.0)
    return (scores - low) / (high - low + eps)
