"""How much better a completion is than its group: P problems with N completions each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from jaxtyping import Bool, Float
from pydantic import Field

from cooper_rl.config.base import Config

if TYPE_CHECKING:
    from torch import Tensor


class GRPO(Config):
    """(r - mean) / (std + eps) inside each group, std with N - 1 in the denominator.

    Shao et al. 2024 (DeepSeekMath, arXiv 2402.03300, section 4.1.2). The paper does not say which std it means;
    N - 1 is what the trainers in common use compute.
    """

    kind: Literal["grpo"] = "grpo"
    """Names this estimator."""
    eps: float = Field(default=1e-6, ge=0)
    """Added to the std. Groups with no usable spread are excluded before it could matter."""


class DrGRPO(Config):
    """r - mean inside each group: no division, so easy and hard problems keep their weight.

    Liu et al. 2025 ("Understanding R1-Zero-like training", arXiv 2503.20783, section 3). The paper's loss also
    divides by a constant length: pair it with the aggregation `sequence_mean_token_sum`.
    """

    kind: Literal["dr_grpo"] = "dr_grpo"
    """Names this estimator."""


class RLOO(Config):
    """r minus the mean of the *other* completions, an unbiased baseline; equals (r - mean) N / (N - 1).

    Ahmadian et al. 2024 ("Back to basics", arXiv 2402.14740, section 2).
    """

    kind: Literal["rloo"] = "rloo"
    """Names this estimator."""


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


class MaxRL(Config):
    """(r - mean) / mean inside each group: the gradient of maximum likelihood as N grows, for rewards >= 0.

    Tajwar et al. 2026 (arXiv 2602.02710): an average over the successes, with a zero-mean control variate.
    A group whose mean is not positive has no success to imitate and gets 0. For rewards >= 0 the result lies in
    [-1, N - 1]; penalties can push rewards below zero and the mean near it, so it is clamped to +-(N - 1).
    """

    kind: Literal["maxrl"] = "maxrl"
    """Names this estimator."""


AdvantageConfig = Annotated[GRPO | DrGRPO | RLOO | ReinforcePPBaseline | MaxRL, Field(discriminator="kind")]


def usable_groups(rewards: Float[Tensor, "P N"], min_spread: float) -> Bool[Tensor, " P"]:
    """Groups whose largest and smallest reward differ by more than `min_spread` (in units of the reward).

    The range rather than the std, so that one different completion counts the same whatever N is. Reward-model
    scores are never exactly equal: without a threshold a std would blow their noise up to advantages of size 1.
    Raises ValueError on a non-finite reward.
    """
    _require_finite(rewards)
    return rewards.amax(dim=1) - rewards.amin(dim=1) > min_spread


def advantages(
    rewards: Float[Tensor, "P N"], config: AdvantageConfig, usable: Bool[Tensor, " P"] | None = None
) -> Float[Tensor, "P N"]:
    """Advantages in the dtype of `rewards`, computed in float64; exactly 0 in groups that are not `usable`.

    `usable` comes from `usable_groups`; by default every group with any spread at all.
    Raises ValueError on a non-finite reward.
    """
    if usable is None:
        usable = usable_groups(rewards, min_spread=0.0)
    else:
        _require_finite(rewards)
    result = rewards.new_zeros(rewards.shape)
    if usable.any():
        result[usable] = _of_usable(rewards[usable].double(), config).to(rewards.dtype)
    return result


def _of_usable(rewards: Float[Tensor, "P N"], config: AdvantageConfig) -> Float[Tensor, "P N"]:
    n = rewards.shape[1]
    mean = rewards.mean(dim=1, keepdim=True)
    centred = rewards - mean
    match config:
        case GRPO():
            return centred / (rewards.std(dim=1, keepdim=True) + config.eps)
        case DrGRPO():
            return centred
        case RLOO():
            return centred * n / (n - 1)
        case ReinforcePPBaseline():
            return centred / (centred.square().mean().sqrt() + config.eps)
        case MaxRL():
            succeeded = mean > 0
            return (centred / mean.where(succeeded, 1.0)).clamp(1 - n, n - 1).where(succeeded, 0.0)


def _require_finite(rewards: Float[Tensor, "P N"]) -> None:
    broken = (~rewards.isfinite()).any(dim=1).nonzero().flatten().tolist()
    if broken:
        raise ValueError(f"non-finite rewards in groups {broken}; every reward must be a finite number")
