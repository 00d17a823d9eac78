"""Advantages: how much better a completion is than its group. Each estimator is a record in a file of this package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Protocol, runtime_checkable

from jaxtyping import Bool

from cooper_rl.config.registry import Kinds

if TYPE_CHECKING:
    from torch import Tensor

    from cooper_rl.rollouts import Ragged

ADVANTAGES = Kinds("advantage", "cooper_rl.policy.advantages", ["of"])
"""The kinds of `algorithm.advantages`."""


@dataclass(frozen=True)
class Completions:
    """What some estimators read besides rewards, before the step's update."""

    lengths: Ragged
    """Tokens of each completion."""
    mean_logprobs: Ragged
    """The mean log-probability of each completion's tokens, in nats."""

    def select(self, chosen: Bool[Tensor, " P"]) -> Completions:
        """Only the groups where `chosen` is true."""
        return Completions(self.lengths.select(chosen), self.mean_logprobs.select(chosen))


class Advantage(Protocol):
    """An estimator of advantages."""

    def of(self, rewards: Ragged) -> Ragged:
        """Advantages of the step's usable groups.

        `rewards` are float64, finite, and not all equal within any group.
        """
        ...


@runtime_checkable
class ReadsCompletions(Protocol):
    """An estimator that also reads lengths and log-probabilities. Its record says so with `reads_completions`."""

    reads_completions: ClassVar[Literal[True]]

    def of(self, rewards: Ragged, completions: Completions) -> Ragged:
        """See `Advantage`."""
        ...


AdvantageConfig = Annotated[Advantage | ReadsCompletions, ADVANTAGES]


def usable_groups(rewards: Ragged, min_spread: float) -> Bool[Tensor, " P"]:
    """Groups whose largest and smallest reward differ by more than `min_spread` (in units of the reward).

    The spread is the range, not the std, so one different completion counts the same for any group size N. The
    threshold is needed because reward-model scores are never exactly equal: without it, dividing by the std would
    amplify their noise to advantages of about 1. Raises ValueError on a non-finite reward.
    """
    _require_finite(rewards)
    return rewards.amax() - rewards.amin() > min_spread


def advantages(
    rewards: Ragged,
    config: Advantage | ReadsCompletions,
    usable: Bool[Tensor, " P"] | None = None,
    completions: Completions | None = None,
) -> Ragged:
    """Advantages in the dtype of `rewards`, computed in float64. They are exactly 0 in groups that are not `usable`.

    `usable` comes from `usable_groups`; by default, every group with any spread is usable. Groups may differ in size.
    An estimator that reads `completions` needs them. Raises ValueError on a non-finite reward.
    """
    if usable is None:
        usable = usable_groups(rewards, min_spread=0.0)
    else:
        _require_finite(rewards)
    result = rewards.flat.new_zeros(rewards.flat.shape)
    if usable.any():
        chosen = rewards.select(usable)
        chosen = chosen.like(chosen.flat.double())
        if not isinstance(config, ReadsCompletions):
            found = config.of(chosen)
        elif completions is None:
            raise ValueError("the estimator reads completions, but none are given")
        else:
            found = config.of(chosen, completions.select(usable))
        result[rewards.expand(usable)] = found.flat.to(result.dtype)
    return rewards.like(result)


def _require_finite(rewards: Ragged) -> None:
    broken = [p for p, group in enumerate(rewards.groups()) if not group.isfinite().all()]
    if broken:
        raise ValueError(f"non-finite rewards in groups {broken}; every reward must be a finite number")
