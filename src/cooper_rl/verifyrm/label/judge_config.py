"""Settings of the judge: a language model that says whether a completion agrees with the reference."""

from typing import Annotated, Literal

from pydantic import Field

from cooper_rl.clients.chat_config import ChatConfig
from cooper_rl.config.base import Config

Reading = Literal["text", "first_token"]


class ChatJudgeConfig(ChatConfig):
    """A judge behind an OpenAI-compatible server."""

    kind: Literal["chat"] = "chat"
    """Names this kind of judge."""
    read: Reading = "text"
    """`text` parses the reply; `first_token` compares the probabilities of yes and no, which the server must send."""
    temperature: float = Field(default=0.0, ge=0)
    """Sampling temperature."""
    max_tokens: int = Field(default=16, ge=1)
    """Longest reply, in tokens. A judge that thinks aloud needs more. With `first_token` only one is asked for."""


class LocalJudgeConfig(Config):
    """A judge in this process."""

    kind: Literal["local"] = "local"
    """Names this kind of judge."""
    model: str
    """A folder or hub name of a causal language model."""
    read: Reading = "first_token"
    """`first_token` compares the probabilities of yes and no as the first token of the reply; `text` parses a reply."""
    max_tokens: int = Field(default=16, ge=1)
    """Longest reply, in tokens. Only used with `text`."""
    max_rows: int = Field(default=16, ge=1)
    """Largest number of completions judged at once."""
    max_completion_chars: int = Field(default=6000, ge=100)
    """Most characters of a completion. A longer one loses its middle."""
    autocast: Literal["off", "bfloat16"] = "off"
    """Precision of the matrix products."""
    device: str = "auto"
    """`auto`, or a torch device."""


JudgeConfig = Annotated[ChatJudgeConfig | LocalJudgeConfig, Field(discriminator="kind")]


class JudgeFile(Config):
    """A YAML file with one judge."""

    judge: JudgeConfig
    """The judge, of `kind: chat` or `kind: local`."""
