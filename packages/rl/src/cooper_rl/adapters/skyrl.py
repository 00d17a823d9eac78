"""SkyRL: an environment that asks the service; see docs/trainers.md. `skyrl_callback.py` ends the steps."""

# pyright: reportMissingImports=false

from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from cooper_base.data.verdict import UserVerdict
from cooper_rl.adapters.served import client, read_row, single


class CooperEnv(BaseTextEnv):
    """One turn. For tools, override `respond`; to judge a run by what it did, set `verdict` there."""

    verdict: UserVerdict | None = None

    def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None) -> None:
        """Raises InputError if a row lacks question, answer or split, before anything is sampled for it."""
        super().__init__()
        self.problem, self.train = read_row(extras or {}, "a row's extras")
        self.max_turns = (extras or {}).get("max_turns", self.max_turns)
        self.messages: list[dict[str, Any]] = []
        """The run so far, without the prompt."""

    def respond(self, action: str) -> list[dict[str, Any]] | None:
        """What the environment says to this turn of the policy; None ends the run."""
        return None

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Reward the run at its end. SkyRL does not say whether it was cut off, so it counts as complete."""
        self.turns += 1
        self.messages.append({"role": "assistant", "content": action})
        said = self.respond(action)
        if said is not None and self.turns < self.max_turns:
            self.messages += said
            return BaseTextEnvStepOutput(observations=said, reward=0.0, done=False, metadata={})
        completion = self.messages if self.turns > 1 else action
        group = single(self.problem, completion, stopped=True, verdict=self.verdict)
        scored = client().score([group], train=self.train, partial=True)
        metadata = {"verdict": scored.verdicts[0][0], "version": scored.version}
        reward = scored.for_all()[0][0]
        return BaseTextEnvStepOutput(observations=[], reward=reward, done=True, metadata=metadata)
