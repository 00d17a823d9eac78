"""SkyRL: an environment of one turn; see docs/trainers.md. `skyrl_callback.py` ends the steps."""

# pyright: reportMissingImports=false

from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from cooper_rl.adapters.served import client, read_row, single


class CooperEnv(BaseTextEnv):
    def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None) -> None:
        """Raises InputError if a row lacks question, answer or split, before anything is sampled for it."""
        super().__init__()
        self.problem, self.train = read_row(extras or {}, "a row's extras")

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Reward the answer `action`. SkyRL does not say whether it was cut off, so it counts as complete."""
        scored = client().score([single(self.problem, action, stopped=True)], train=self.train, partial=True)
        metadata = {"verdict": scored.verdicts[0][0], "version": scored.version}
        return BaseTextEnvStepOutput(observations=[], reward=scored.rewards[0][0], done=True, metadata=metadata)
