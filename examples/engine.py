"""An engine of your own: the local one, with a sampler that counts what it draws.

In YAML: engine: {kind: "engine:CountingEngine"}

An engine for a cluster also has its own learners, which derive from PolicyLearner and RewardModelLearner.
"""

from typing import Any

from cooper_rl import Engine, PolicyLearner, RewardModelLearner, Sampler
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local import LocalEngine


class CountingEngine(Engine):
    """Builds the learners and the sampler of a run."""

    def policy(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> PolicyLearner:
        """The policy, or its frozen reference."""
        return LocalEngine().policy(config, total_steps, trainable)

    def reward_model(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> RewardModelLearner:
        """A reward model."""
        return LocalEngine().reward_model(config, total_steps, trainable)

    def sampler(self, policy: LearnerConfig, max_rows: int) -> Sampler:
        """A sampler that draws from the policy's current weights."""
        return CountingSampler(LocalEngine().sampler(policy, max_rows))


class CountingSampler(Sampler):
    """Passes every call on to another sampler and prints the counts."""

    def __init__(self, inner: Sampler):
        self._inner = inner

    def sync_weights(self, learner: PolicyLearner) -> None:
        """Take over the policy's current weights."""
        self._inner.sync_weights(learner)

    def sample(self, prompts: Any, n: int, params: Any, seed: int) -> Any:
        """`n` completions for each of the prompts (token ids)."""
        print("own engine:", len(prompts), "prompts,", n, "completions each")
        return self._inner.sample(prompts, n, params, seed)


if __name__ == "__main__":
    from tiny_run import train

    train(engine=CountingEngine())
