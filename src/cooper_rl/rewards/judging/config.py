"""Settings that rewards from judges share."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cooper_rl.clients.chat import ChatConfig
from cooper_rl.rewards.base import RewardConfig


class JudgeServer(ChatConfig):
    """A judge behind an OpenAI-compatible server."""

    temperature: float = Field(default=0.0, ge=0)
    """Sampling temperature."""
    max_tokens: int = Field(default=1024, ge=1)
    """Longest reply, in tokens. A judge that reaches it is not heard."""
    step_timeout_s: float = Field(default=300.0, gt=0)
    """Seconds that the judge may take for all completions of a step, including retries and waits. Answers without a
    verdict by then get the group's mean. The run waits for the judge."""
    max_completion_chars: int = Field(default=6000, ge=100)
    """Most characters of a completion that the judge reads. A longer one loses its middle."""


class VerdictServer(JudgeServer):
    """A judge that says yes or no."""

    read: Literal["text", "first_token"] = "text"
    """`text` parses the reply into 1 or 0. `first_token` pays the probability of yes, relative to yes and no, as the
    first token; the server must send probabilities."""
    max_tokens: int = Field(default=16, ge=1)
    """Longest reply, in tokens. A judge that thinks aloud needs more. With `first_token` only one is asked for."""

    def asked(self) -> VerdictServer:
        """The settings with which the server is asked."""
        if self.read == "text":
            return self
        return self.model_copy(update={"max_tokens": 1, "top_logprobs": self.top_logprobs or 20})


class JudgeRewardConfig(RewardConfig):
    """A reward that a judge gives. Answers on which the judge is not heard get the mean of their group."""

    judge: JudgeServer
    """The server that is asked."""

    def check(self) -> None:
        """Raises InputError if the judge's server does not answer."""
        from cooper_rl.clients.chat import ChatClient  # noqa: PLC0415 - settings are read without the client

        with ChatClient(self.judge) as client:
            client.check()
