"""Advantages far from the rest of the step."""

from jaxtyping import Bool, Float
from torch import Tensor

from cooper_rl.rollouts import Ragged


def without_outliers(advantages: Ragged, counted: Bool[Tensor, " P"], max_z: float) -> tuple[Ragged, Float[Tensor, ""]]:
    """The advantages with 0 where they differ from their mean by more than `max_z` std, and the share set to 0.

    Mean and std (N in the denominator) are over the completions of the `counted` groups, and so is the share. Of N
    values none differs by more than (N - 1) / sqrt(N) std, so a `max_z` of 3 never acts on fewer than 11 completions.
    StableReinforce (R1-Reward, arXiv 2505.02835); its code compares with mean +- 3, which is not the z-score of the
    paper.
    """
    inside = advantages.expand(counted)
    flat = advantages.flat
    if not inside.any():
        return advantages, flat.new_zeros(())
    mean, std = flat[inside].mean(), flat[inside].std(correction=0)
    outlying = inside & ((flat - mean).abs() > max_z * std)
    return advantages.like(flat.masked_fill(outlying, 0.0)), outlying[inside].to(flat.dtype).mean()
