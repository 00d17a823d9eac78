"""Settings of the client of OpenAI-compatible chat servers."""

from typing import Any

from pydantic import Field

from cooper_rl.config.base import Config

HANDLING = frozenset({"api_key_env", "timeout_s", "max_retries", "retry_wait_s", "concurrency"})
"""Settings of `ChatConfig` that decide how a server is asked and not what it says."""


class ChatConfig(Config):
    """A chat model behind an OpenAI-compatible server."""

    base_url: str
    """Address of the server up to and including the version, such as `http://localhost:8000/v1`."""
    model: str
    """The model's name on that server."""
    api_key_env: str | None = None
    """Environment variable that holds the key; none for a server that asks for no key."""
    temperature: float = Field(default=0.7, ge=0)
    """Sampling temperature."""
    max_tokens: int = Field(default=1024, ge=1)
    """Longest reply; one that reaches this counts as the failure `truncated`."""
    timeout_s: float = Field(default=60.0, gt=0)
    """Seconds one request may take from start to end."""
    max_retries: int = Field(default=3, ge=0)
    """Further tries after a time-out, a lost connection, a malformed body, or HTTP 408, 409, 429 or 5xx."""
    retry_wait_s: float = Field(default=0.5, ge=0)
    """Seconds before the first retry; each later wait is about twice as long, up to 20 s. A server's `Retry-After` is
    kept to up to 20 s; a request that is to wait longer fails at once."""
    concurrency: int = Field(default=16, ge=1)
    """Most requests under way at once."""
    send_seed: bool = True
    """Send the seed a caller gives with each request; switch off for a server that refuses the field."""
    top_logprobs: int = Field(default=0, ge=0, le=20)
    """Ask for the log-probabilities of this many candidates for the reply's first token."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request body, such as `{"chat_template_kwargs": {"enable_thinking": false}}`."""
