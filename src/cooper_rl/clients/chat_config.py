"""Settings of the client of OpenAI-compatible chat servers."""

from typing import Any

from pydantic import Field

from cooper_rl.config.base import Config

Message = dict[str, str]
"""`{"role": "system" | "user" | "assistant", "content": …}`."""

HANDLING = frozenset({"api_key_env", "timeout_s", "max_retries", "retry_wait_s", "concurrency"})
"""Settings of `ChatConfig` that decide how a server is asked. They do not change its replies."""


class ChatConfig(Config):
    """A chat model behind an OpenAI-compatible server."""

    base_url: str
    """Address of the server up to and including the version, such as `http://localhost:8000/v1`."""
    model: str
    """The model's name on that server."""
    api_key_env: str | None = None
    """Environment variable that holds the key; null for a server that needs no key."""
    temperature: float = Field(default=0.7, ge=0)
    """Sampling temperature."""
    max_tokens: int = Field(default=1024, ge=1)
    """Longest reply, in tokens. A reply that reaches this limit counts as the failure `truncated`."""
    timeout_s: float = Field(default=60.0, gt=0)
    """Seconds that one request may take from start to end."""
    max_retries: int = Field(default=3, ge=0)
    """Retries after a timeout, a lost connection, a malformed body, or HTTP 408, 409, 429 or 5xx."""
    retry_wait_s: float = Field(default=0.5, ge=0)
    """Seconds before the first retry. Each later wait is about twice as long, up to 20 s. A `Retry-After` from the
    server is respected up to 20 s; if the server asks for more, the request fails at once."""
    concurrency: int = Field(default=16, ge=1)
    """Most requests that are open at once."""
    send_seed: bool = True
    """Send the caller's seed with each request. Switch this off for a server that refuses the field."""
    top_logprobs: int = Field(default=0, ge=0, le=20)
    """Number of candidates for the first token of the reply whose log-probabilities are requested."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Additional fields of the request body, such as `{"chat_template_kwargs": {"enable_thinking": false}}`."""
