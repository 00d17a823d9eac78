"""Estimators whose baseline is a mean over the completions of the same problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.policy.advantages import ADVANTAGES

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from cooper_rl.rollouts import Ragged


@ADVANTAGES.register
class GRPO(Config):
    """(r - mean) / (max(std, std_floor) + eps) inside each group, with N - 1 in the denominator of the std.

    Shao et al. 2024 (DeepSeekMath, arXiv 2402.03300, section 4.1.2). The paper does not say which std it means;
    widely used trainers divide by N - 1. The floor is not in the paper.
    """

    kind: Literal["grpo"] = "grpo"
    """Names this estimator."""
    eps: float = Field(default=1e-6, ge=0)
    """Added to the std. It rarely matters, because groups without usable spread are excluded first."""
    std_floor: float = Field(default=0.0, ge=0)
    """Lower bound of the std, in units of the reward; 0 means none. `algorithm.min_spread` leaves out groups whose
    rewards hardly differ, and every group above it counts in full: rewards of .0005 to .02 have advantages as large as
    rewards of 0 to 1. With a floor, advantages shrink with the spread instead: they are at most (range of the group's
    rewards) / std_floor. Rewards of 0 and 1 have a std of at least 1 / sqrt(N) in a group of N, so a floor below that
    does not touch groups with right and wrong answers of a rule."""

    def of(self, rewards: Ragged) -> Ragged:
        """See `Advantage`."""
        divisor = rewards.std().clamp(min=self.std_floor) + self.eps
        return rewards.like(_centred(rewards) / rewards.expand(divisor))


@ADVANTAGES.register
class DrGRPO(Config):
    """r - mean inside each group. Nothing is divided, so easy and hard problems keep their weight.

    Liu et al. 2025 ("Understanding R1-Zero-like training", arXiv 2503.20783, section 3). The paper's loss also
    divides by a constant length; for that, combine it with the aggregation `sequence_mean_token_sum`.
    """

    kind: Literal["dr_grpo"] = "dr_grpo"
    """Names this estimator."""

    def of(self, rewards: Ragged) -> Ragged:
        """See `Advantage`."""
        return rewards.like(_centred(rewards))


@ADVANTAGES.register
class RLOO(Config):
    """r minus the mean of the *other* completions, an unbiased baseline. This equals (r - mean) N / (N - 1).

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
    """r - group mean, divided by the std of that difference over all usable groups of the step.

    Hu et al. 2025 (REINFORCE++ with baseline, arXiv 2501.03262). The std is over completions, each counted once. The
    differences have mean zero by construction, so the std is the root of their mean square (no N - 1).
    verl reads the paper differently. It normalises over tokens, so a long completion counts more in the std, and it
    subtracts the differences' mean over tokens, which is not zero if lengths differ.
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
    """(r - mean) / mean inside each group. For rewards >= 0 this approaches the maximum-likelihood gradient as N grows.

    Tajwar et al. 2026 (arXiv 2602.02710): an average over the successes, with a zero-mean control variate.
    A group whose mean is not positive has no success to imitate and gets 0. For rewards >= 0 the result lies in
    [-1, N - 1]. Penalties can make rewards negative and the mean almost zero, so the result is clamped to +-(N - 1).
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
