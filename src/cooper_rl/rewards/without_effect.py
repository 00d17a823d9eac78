"""Refuses settings that cannot act under the estimator of advantages."""

import math
from collections.abc import Sequence
from typing import Any

from cooper_rl.policy.advantages import GRPO
from cooper_rl.policy.config import AlgorithmConfig


def check_effect(shaping: Sequence[Any], algorithm: AlgorithmConfig) -> None:
    """Raises ValueError for a shaping that changes no gradient.

    (r - mean) / std of a group does not change if the group's rewards are scaled by a positive factor or shifted. The
    last shapings of the list therefore have no effect under `grpo` if they do nothing else (`affine_per_group`). An
    earlier one may matter to those after it, and any may matter to a KL penalty that is subtracted from the reward, or
    to a floor of the std.
    """
    grpo = algorithm.advantages
    if not isinstance(grpo, GRPO) or grpo.std_floor > 0 or algorithm.pulls_in("reward"):
        return
    if shaping and getattr(shaping[-1], "affine_per_group", False):
        name = getattr(shaping[-1], "kind", type(shaping[-1]).__name__)
        raise ValueError(
            f"shaping: {name} only scales and shifts the rewards of a group, and advantages of kind grpo, "
            "(r - mean) / std, undo both, so it changes no gradient; remove it, or use another kind of "
            "algorithm.advantages, such as dr_grpo (which groups are left out is set by algorithm.min_spread)"
        )


def check_outliers(algorithm: AlgorithmConfig, problems: int, n: int) -> None:
    """Raises ValueError for a `max_advantage_z` that no advantage of a step can exceed.

    None of M numbers is further from their mean than sqrt(M - 1) of their standard deviations (M in the denominator).
    In a step M is `problems` times `n` completions. Under `grpo`, however, every group of `n` has mean 0 and the same
    standard deviation, so its own bound, sqrt(n - 1), is that of the step; a floor of the std, or an `eps` that is not
    small beside `min_spread`, makes groups differ.
    """
    grpo, largest = algorithm.advantages, algorithm.max_advantage_z
    alike = isinstance(grpo, GRPO) and not getattr(grpo, "std_floor", 0.0) and grpo.eps <= algorithm.min_spread / 1000
    count, what = (n, "group under advantages of kind grpo") if alike else (problems * n, "step")
    if largest is not None and largest >= math.sqrt(count - 1):
        bound = math.sqrt(count - 1)
        raise ValueError(
            f"algorithm.max_advantage_z: {largest:g} cannot act: none of the {count} completions of a {what} is "
            f"further than sqrt({count} - 1) = {bound:.2f} standard deviations from the mean; set it below that, take "
            f"more completions (at least {math.floor(largest**2) + 2}), or remove it"
        )
