"""Advantages: how much better a completion is than its group. Each estimator is a record in a file of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol

from jaxtyping import Bool

from cooper_rl.config.registry import Kinds

if TYPE_CHECKING:
    from torch import Tensor

    from cooper_rl.rollouts.ragged import Ragged

ADVANTAGES = Kinds("advantage", "cooper_rl.policy.advantages", ["of"])
"""The kinds of `algorithm.advantages`."""


class Advantage(Protocol):
    """An estimator of advantages."""

    def of(self, rewards: Ragged) -> Ragged:
        """Advantages of the step's usable groups.

        `rewards` are float64, finite, and not all equal within any group.
        """
        ...


AdvantageConfig = Annotated[Advantage, ADVANTAGES]


def usable_groups(rewards: Ragged, min_spread: float) -> Bool[Tensor, " P"]:
    """Groups whose largest and smallest reward differ by more than `min_spread` (in units of the reward).

    The spread is the range, not the std, so one different completion counts the same for any group size N. The
    threshold is needed because reward-model scores are never exactly equal: without it, dividing by the std would
    amplify their noise to advantages of about 1. Raises ValueError on a non-finite reward.
    """
    _require_finite(rewards)
    return rewards.amax() - rewards.amin() > min_spread


def advantages(rewards: Ragged, config: Advantage, usable: Bool[Tensor, " P"] | None = None) -> Ragged:
    """Advantages in the dtype of `rewards`, computed in float64. They are exactly 0 in groups that are not `usable`.

    `usable` comes from `usable_groups`; by default, every group with any spread is usable. Groups may differ in size.
    Raises ValueError on a non-finite reward.
    """
    if usable is None:
        usable = usable_groups(rewards, min_spread=0.0)
    else:
        _require_finite(rewards)
    result = rewards.flat.new_zeros(rewards.flat.shape)
    if usable.any():
        chosen = rewards.select(usable)
        found = config.of(chosen.like(chosen.flat.double()))
        result[rewards.expand(usable)] = found.flat.to(result.dtype)
    return rewards.like(result)


def _require_finite(rewards: Ragged) -> None:
    broken = [p for p, group in enumerate(rewards.groups()) if not group.isfinite().all()]
    if broken:
        raise ValueError(f"non-finite rewards in groups {broken}; every reward must be a finite number")
