"""How a run applies shapings, the transforms of finished rewards, and the refusal of one without effect.

The shapings themselves are designs of papers, which the package cooper-lab has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cooper_rl.engines.losses.policy import pulls_in
from cooper_rl.policy.advantages import GRPO
from cooper_rl.reward.base import Measures, Scores, Shaping, merged, named_metrics

if TYPE_CHECKING:
    from cooper_rl.policy.config import AlgorithmConfig
    from cooper_rl.reward.context import StepContext


def shaped(scores: Scores, shapings: Sequence[Shaping], context: StepContext) -> Scores:
    """The scores after these shapings, in order. The part `unshaped` holds the rewards before them.

    Metrics of the shapings are added. If two have a metric of the same name, the later shaping's number in the list is
    appended.
    """
    paid, metrics = scores.rewards, dict(scores.metrics)
    for index, shaping in enumerate(shapings, 1):
        paid = shaping.shape(paid, context)
        if isinstance(shaping, Measures):
            metrics = merged(metrics, named_metrics(shaping, shaping.metrics(context)), index)
    return Scores(paid, {**scores.parts, "unshaped": scores.rewards}, metrics)


def check_effect(shaping: Sequence[Any], algorithm: AlgorithmConfig) -> None:
    """Raises ValueError for a shaping that changes no gradient.

    (r - mean) / std of a group does not change if the group's rewards are scaled by a positive factor or shifted. Under
    `grpo` the last shaping of the list is therefore refused if it does nothing else (`affine_per_group`). An earlier
    one may matter to those after it, and any may matter to a KL penalty that is subtracted from the reward, or to a
    floor of the std.
    """
    grpo = algorithm.advantages
    if not isinstance(grpo, GRPO) or grpo.std_floor > 0 or pulls_in(algorithm.kl, "reward"):
        return
    if shaping and getattr(shaping[-1], "affine_per_group", False):
        name = getattr(shaping[-1], "kind", type(shaping[-1]).__name__)
        raise ValueError(
            f"shaping: {name} only scales and shifts the rewards of a group, and advantages of kind grpo, "
            "(r - mean) / std, undo both, so it changes no gradient; remove it, or use another kind of "
            "algorithm.advantages, such as dr_grpo (which groups are left out is set by algorithm.min_spread)"
        )
