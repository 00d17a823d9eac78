"""Advantages that stand out, as in StableReinforce: the setting `algorithm.max_advantage_z`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cooper_rl import GRPO

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from cooper_rl import AlgorithmConfig, Ragged


def without_outliers(advantages: Ragged, counted: Bool[Tensor, " P"], max_z: float) -> tuple[Ragged, Float[Tensor, ""]]:
    """The advantages with 0 where they differ from their mean by more than `max_z` std, and the share set to 0.

    Mean and std (N in the denominator) are over the completions of the `counted` groups, and so is the share. Of N
    values none differs by more than sqrt(N - 1) std, so a `max_z` of 3 never acts on fewer than 11 completions.
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


def check_outliers(algorithm: AlgorithmConfig, problems: int, n: int) -> None:
    """Raises ValueError for a `max_advantage_z` that no advantage of a step can exceed.

    None of M numbers is further from their mean than sqrt(M - 1) of their standard deviations (M in the denominator).
    In a step M is `problems` times `n` completions. Under `grpo`, however, every group of `n` has mean 0 and the same
    standard deviation, so its own bound, sqrt(n - 1), is that of the step; a floor of the std, or an `eps` that is not
    small beside `min_spread`, makes groups differ.
    """
    grpo, largest = algorithm.advantages, algorithm.max_advantage_z
    alike = isinstance(grpo, GRPO) and not grpo.std_floor and grpo.eps <= algorithm.min_spread / 1000
    count, what = (n, "group under advantages of kind grpo") if alike else (problems * n, "step")
    if largest is not None and largest >= math.sqrt(count - 1):
        bound = math.sqrt(count - 1)
        raise ValueError(
            f"algorithm.max_advantage_z: {largest:g} cannot act: none of the {count} completions of a {what} is "
            f"further than sqrt({count} - 1) = {bound:.2f} standard deviations from the mean; set it below that, take "
            f"more completions (at least {math.floor(largest**2) + 2}), or remove it"
        )
