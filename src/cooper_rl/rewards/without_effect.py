"""Refuses shapings that the estimator of advantages undoes."""

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
