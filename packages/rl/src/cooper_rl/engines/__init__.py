"""Learners and samplers: all code that works with tensors. Each engine is a folder of this package."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from cooper_base.config.base import Config, Kinds

if TYPE_CHECKING:
    from cooper_rl.engines.base import PolicyLearner, RewardModelLearner, Sampler
    from cooper_rl.engines.config import LearnerConfig, SamplingParams


class Engine(Config):
    """The settings of an engine, which build its learners and its sampler.

    `policy`, `reward_model` and `sampler` raise InputError for a model folder that they cannot use. `total_steps` is
    the number of optimizer steps in the whole run. A learner that is not `trainable` only computes.
    """

    evaluates_folders: ClassVar[bool] = False
    """Whether `cooper eval` can use it outside of a run."""
    reward_model_has_head: ClassVar[bool] = True
    """Whether its reward model is a classification model, or a language model that is asked. False for an engine that
    scores by other means, from any causal language model."""

    @abstractmethod
    def policy(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> PolicyLearner:
        """A causal language model: the policy or, if it is not trainable, the reference policy."""

    @abstractmethod
    def reward_model(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> RewardModelLearner: ...

    @abstractmethod
    def sampler(self, policy: LearnerConfig, max_rows: int) -> Sampler:
        """A sampler for the policy, without weights yet. It draws at most `max_rows` completions at once (0: all)."""

    def check(self, policy: LearnerConfig, sampling: SamplingParams) -> None:
        """Raises InputError, before any model is loaded, for a policy or sampling that the engine cannot take."""

    @property
    def draws_elsewhere(self) -> bool:
        """Whether another implementation of the model than the learner's draws, whose log-probabilities differ."""
        return False

    @property
    def learns_side_by_side(self) -> bool:
        """Whether the reward model can be updated while the policy is."""
        return False

    def open(self, directory: Path) -> None:
        """Start the processes of the run before any model is loaded; their logs go into the run's folder."""

    def close(self) -> None:
        """End these processes. Does nothing for an engine that is not open."""


ENGINES = Kinds("engine", "cooper_rl.engines.kinds", ["policy", "reward_model", "sampler"], base=Engine)
"""The kinds of `engine`, which `kinds.py` lists."""


EngineConfig = Annotated[Engine, ENGINES]
