"""Estimators whose baseline is a mean over the completions of the same problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.policy.advantages import ADVANTAGES

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from cooper_rl.rollouts.ragged import Ragged


@ADVANTAGES.register
class GRPO(Config):
    """(r - mean) / (std + eps) inside each group, std with N - 1 in the denominator.

    Shao et al. 2024 (DeepSeekMath, arXiv 2402.03300, section 4.1.2). The paper does not say which std it means;
    N - 1 is what the trainers in common use compute.
    """

    kind: Literal["grpo"] = "grpo"
    """Names this estimator."""
    eps: float = Field(default=1e-6, ge=0)
    """Added to the std. Groups with no usable spread are excluded before it could matter."""

    def of(self, rewards: Ragged) -> Ragged:
        """See `Advantage`."""
        return rewards.like(_centred(rewards) / (rewards.expand(rewards.std()) + self.eps))


@ADVANTAGES.register
class DrGRPO(Config):
    """r - mean inside each group: no division, so easy and hard problems keep their weight.

    Liu et al. 2025 ("Understanding R1-Zero-like training", arXiv 2503.20783, section 3). The paper's loss also
    divides by a constant length: pair it with the aggregation `sequence_mean_token_sum`.
    """

    kind: Literal["dr_grpo"] = "dr_grpo"
    """Names this estimator."""

    def of(self, rewards: Ragged) -> Ragged:
        """See `Advantage`."""
        return rewards.like(_centred(rewards))


@ADVANTAGES.register
class RLOO(Config):
    """r minus the mean of the *other* completions, an unbiased baseline; equals (r - mean) N / (N - 1).

    Ahmadian et al. 2024 ("Back to basics", arXiv 2402.14740, section 2).
    """

    kind: Literal["rloo"] = "rloo"
    """Names this estimator."""

    def of(self, rewards: Ragged) -> Ragged:
        """See `Advantage`."""
        n = rewards.expand(rewards.counts())
        return rewards.like(_centred(rewards) * n / (n - 1))


@ADVANTAGES.register
class ReinforcePPBaseline(Config):
    """r - group mean, then divided by the std of that difference over the whole step's usable groups.

    Hu et al. 2025 (REINFORCE++ with baseline, arXiv 2501.03262). The std is over completions, each counted once. The
    differences have mean zero by construction, so it is the root of their mean square (no N - 1).
    verl reads the paper otherwise: it normalises over tokens, so that a long completion counts more in the std, and
    subtracts the differences' mean over tokens, which is not zero where lengths differ.
    """

    kind: Literal["reinforce_pp_baseline"] = "reinforce_pp_baseline"
    """Names this estimator."""
    eps: float = Field(default=1e-6, ge=0)
    """Added to the std."""

    def of(self, rewards: Ragged) -> Ragged:
        """See `Advantage`."""
        centred = _centred(rewards)
        return rewards.like(centred / (centred.square().mean().sqrt() + self.eps))


@ADVANTAGES.register
class MaxRL(Config):
    """(r - mean) / mean inside each group: the gradient of maximum likelihood as N grows, for rewards >= 0.

    Tajwar et al. 2026 (arXiv 2602.02710): an average over the successes, with a zero-mean control variate.
    A group whose mean is not positive has no success to imitate and gets 0. For rewards >= 0 the result lies in
    [-1, N - 1]; penalties can push rewards below zero and the mean near it, so it is clamped to +-(N - 1).
    """

    kind: Literal["maxrl"] = "maxrl"
    """Names this estimator."""

    def of(self, rewards: Ragged) -> Ragged:
        """See `Advantage`."""
        mean, n = rewards.expand(rewards.mean()), rewards.expand(rewards.counts())
        succeeded = mean > 0
        ratio = (rewards.flat - mean) / mean.where(succeeded, 1.0)
        return rewards.like(ratio.clamp(1 - n, n - 1).where(succeeded, 0.0))


def _centred(rewards: Ragged) -> Float[Tensor, " B"]:
    return rewards.flat - rewards.expand(rewards.mean())
