"""An engine of the tests that is lost while it samples, as one whose processes die."""

from pathlib import Path
from typing import Any

from cooper_base.errors import EngineLost
from cooper_rl import Engine, PolicyLearner, RewardModelLearner, Sampler
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local import LocalEngine


class LostEngine(Engine):
    """The local engine, whose draws with these numbers fail. The file `drawn` counts them, also after a restart."""

    drawn: Path
    lost_at: tuple[int, ...]

    def policy(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> PolicyLearner:
        return LocalEngine().policy(config, total_steps, trainable)

    def reward_model(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> RewardModelLearner:
        return LocalEngine().reward_model(config, total_steps, trainable)

    def sampler(self, policy: LearnerConfig, max_rows: int) -> Sampler:
        return LostSampler(self, LocalEngine().sampler(policy, max_rows))


class LostSampler(Sampler):
    def __init__(self, engine: LostEngine, inner: Sampler) -> None:
        self._engine, self._inner = engine, inner

    def sync_weights(self, learner: PolicyLearner) -> None:
        self._inner.sync_weights(learner)

    def sample(self, prompts: Any, n: int, params: Any, seed: int) -> Any:
        with self._engine.drawn.open("a") as file:
            file.write("x")
        if self._engine.drawn.stat().st_size in self._engine.lost_at:
            raise EngineLost("the process that samples is dead")
        return self._inner.sample(prompts, n, params, seed)
