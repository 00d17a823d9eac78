"""Learners and samplers: all code that works with tensors. Each engine is a folder of this package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, runtime_checkable

from cooper_rl.config.base import Kinds

if TYPE_CHECKING:
    from cooper_rl.engines.base import PolicyLearner, RewardModelLearner, Sampler
    from cooper_rl.engines.config import LearnerConfig

ENGINES = Kinds("engine", "cooper_rl.engines.ray.config", ["policy", "reward_model", "sampler"])
"""The kinds of `engine`. The home's module is built on the other two engines, so it imports them all."""


class Engine(Protocol):
    """The settings of an engine, which build its learners and its sampler.

    All three methods raise InputError for a model folder that they cannot use. `total_steps` is the number of optimizer
    steps in the whole run. A learner that is not `trainable` only computes. An engine may also have `check(policy:
    LearnerConfig, sampling: SamplingParams)`, which raises InputError before any model is loaded.
    """

    def policy(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> PolicyLearner:
        """A causal language model: the policy or, if it is not trainable, the reference policy."""
        ...

    def reward_model(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> RewardModelLearner: ...

    def sampler(self, policy: LearnerConfig, max_rows: int) -> Sampler:
        """A sampler for the policy, without weights yet. It draws at most `max_rows` completions at once (0: all)."""
        ...


@runtime_checkable
class LongLived(Protocol):
    """The further methods of an engine that holds processes or machines for the length of a run."""

    @property
    def learns_side_by_side(self) -> bool:
        """Whether the reward model can be updated while the policy is."""
        ...

    def open(self, directory: Path) -> None:
        """Start them before any model is loaded; their logs go into the run's folder."""

    def close(self) -> None:
        """End them. Does nothing for an engine that is not open."""


EngineConfig = Annotated[Engine, ENGINES]
