"""What every reward implements, and the registry of kinds of reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from cooper_rl.config.base import Config
from cooper_rl.config.registry import Kinds

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rollouts.ragged import Ragged

REWARDS = Kinds("reward", "cooper_rl.rewards.kinds", needs=["build"])
"""The kinds of reward: `kind: name`, or `kind: package.module:Class` for a record from elsewhere."""

SHAPINGS = Kinds("shaping", "cooper_rl.rewards.shaping", needs=["build"])
"""The kinds of shaping, named in the same way."""


@dataclass(frozen=True)
class Scores:
    """One reward for every answer of a step, and where it comes from.

    `parts` holds every ingredient under its own name (`rule`, `reward_model`, `logit`, …); `metrics` holds step-level
    numbers under their full `area/name`.
    """

    rewards: Ragged
    parts: dict[str, Ragged] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


class Reward(Protocol):
    """Scores the answers of a step. Groups may differ in size.

    The result depends on the context and on nothing that an earlier `score` has left behind: a reward that remembers
    something over the steps (`Remembers`) changes it in `commit` alone.
    """

    def score(self, context: StepContext) -> Scores: ...


class Shaping(Protocol):
    """A transform of finished rewards, in the order of the list `shaping`; it may remember as a reward may."""

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged: ...


@runtime_checkable
class Remembers(Protocol):
    """A reward or shaping with state that outlasts a step, such as a running mean."""

    def commit(self, contexts: Sequence[StepContext]) -> None:
        """Take in a finished step: the contexts of all its `score` calls."""
        ...

    def state(self) -> Any:
        """JSON values for a checkpoint."""
        ...

    def restore(self, state: Any) -> None:
        """Put back what `state` returned."""
        ...


class RewardConfig(Config):
    """Settings of one reward. `build()` makes it."""

    needs_reference: ClassVar[bool] = True
    """Whether problems need a reference answer that the rule accepts."""
    weight: float = 1.0
    """Multiplies the reward before all are added up."""

    def reads(self) -> tuple[str, ...]:
        """Names of the reward models it reads."""
        return ()
