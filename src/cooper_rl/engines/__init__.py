"""Where tensors live: learners, samplers, and what they are given. An engine is a folder of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol

from cooper_rl.config.registry import Kinds

if TYPE_CHECKING:
    from cooper_rl.engines.base import PolicyLearner, RewardModelLearner, Sampler
    from cooper_rl.engines.config import LearnerConfig

ENGINES = Kinds("engine", "cooper_rl.engines", ["policy", "reward_model", "sampler"])
"""The kinds of `engine`."""


class Engine(Protocol):
    """The settings of an engine, which build its learners and its sampler.

    All three raise InputError for a model folder that does not serve. `total_steps` are the optimizer steps of the
    whole run, over which the learning rate is scheduled; a learner that is not `trainable` only computes.

    An engine may also have `check(policy: LearnerConfig, sampling: SamplingParams)`, which is called before any model
    is loaded and raises InputError for what will not run.
    """

    def policy(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> PolicyLearner:
        """A causal language model, to be trained or as the frozen reference."""
        ...

    def reward_model(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> RewardModelLearner:
        """A reward model."""
        ...

    def sampler(self, policy: LearnerConfig, max_rows: int) -> Sampler:
        """A sampler of the policy, whose weights it gets later; at most `max_rows` completions at once (0: all)."""
        ...


EngineConfig = Annotated[Engine, ENGINES]
