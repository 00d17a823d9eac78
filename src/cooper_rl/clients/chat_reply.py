"""The outcome of a chat request: a reply, or a failure of a named kind."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal

FailureKind = Literal[
    "timeout",
    "connection",
    "http_4xx",
    "http_429",
    "http_5xx",
    "malformed",
    "oversized",
    "empty",
    "truncated",
    "deadline",
    "not_sent",
]
"""Why there is no usable reply: the `timeout` of one request, a refused or lost `connection`, an HTTP status, a body
that is not a chat completion (`malformed`) or too long (`oversized`), a text that is `empty` or `truncated`, the
`deadline` for all requests together, or a request `not_sent` because the server had stopped answering."""

OUTAGE = frozenset({"timeout", "connection", "http_429", "http_5xx", "malformed", "oversized", "deadline", "not_sent"})
"""Failures of the server, which say nothing about the chat that was sent."""

LARGEST_BODY = 8 * 2**20
"""Most bytes of a response. A long reply with the log-probabilities of every token takes a third of this."""
LARGEST_ERROR = 2**16
LONGEST_WAIT_S = 20.0
"""Longest wait before a retry. If a server asks for more (`Retry-After`), the request is not retried."""
RETRIED_STATUS = (408, 409, 429)


@dataclass(frozen=True)
class ChatReply:
    """The outcome of one request: a `text`, or a `failure` with its `detail`.

    A `truncated` reply has a text as well. `first_token` maps candidates for the first token to their log-probabilities
    (nats), if `top_logprobs` asked for them and the server sent them.
    """

    text: str = ""
    failure: FailureKind | None = None
    detail: str = ""
    first_token: dict[str, float] = field(default_factory=dict)

    @property
    def heard(self) -> bool:
        """Whether the model replied at all, even with an empty or truncated text. If not, the server failed."""
        return self.failure in (None, "empty", "truncated")


class RequestFailed(Exception):
    """A failed request. A `transient` failure may go away on a retry after `wait_s` seconds."""

    def __init__(self, kind: FailureKind, detail: str, transient: bool = False, wait_s: float = 0.0):
        super().__init__(detail)
        self.kind: FailureKind = kind
        self.transient = transient
        self.wait_s = wait_s


async def raise_for_status(response: Any) -> None:
    """Hook of openai's HTTP client. Raises RequestFailed, with the start of the body, for a status of 400 or above."""
    status = response.status_code
    if status < 400:
        return
    body = await read_to(response.aiter_bytes(), LARGEST_ERROR)
    kind: FailureKind = "http_429" if status == 429 else "http_5xx" if status >= 500 else "http_4xx"
    wait_s = _seconds(response.headers.get("retry-after", ""))
    transient = (status in RETRIED_STATUS or status >= 500) and wait_s <= LONGEST_WAIT_S
    raise RequestFailed(kind, f"HTTP {status}: {body[:200].decode(errors='replace')}", transient, wait_s)


async def read_to(chunks: AsyncIterator[bytes], most: int) -> bytes:
    """The bytes of `chunks`. Reading stops once there are more than `most`."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > most:
            break
    return bytes(body)


def read_reply(body: bytes) -> ChatReply:
    """The reply in a chat-completions response. It is parsed here because openai lets malformed bodies through.

    Raises RequestFailed if the body holds no reply.
    """
    if len(body) > LARGEST_BODY:
        raise RequestFailed("oversized", f"the response exceeds {LARGEST_BODY} bytes")
    try:
        choice = json.loads(body)["choices"][0]
        content, finish_reason = choice["message"]["content"], choice.get("finish_reason")
        tokens = (choice.get("logprobs") or {}).get("content") or []
        first_token = {str(c["token"]): _logprob(c["logprob"]) for c in tokens[0]["top_logprobs"]} if tokens else {}
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise RequestFailed("malformed", f"not a chat completion: {body[:200]!r}", transient=True) from error
    text = content if isinstance(content, str) else ""
    text = text.encode(errors="replace").decode()  # JSON may hold lone surrogates, which cannot be written to a file
    if finish_reason == "length":
        return ChatReply(text, "truncated", "the reply reached max_tokens", first_token)
    if not text.strip():
        return ChatReply("", "empty", "the reply has no text", first_token)
    return ChatReply(text, first_token=first_token)


def _logprob(value: Any) -> float:
    logprob = float(value)
    if not logprob <= 1e-3:  # rounding may lift it slightly above zero; NaN is refused too
        raise ValueError(f"{logprob} is not a log-probability")
    return logprob


def _seconds(retry_after: str) -> float:
    """`Retry-After` in seconds; 0 for a date or nonsense, so that the usual wait applies."""
    return float(retry_after) if retry_after.isdecimal() else 0.0
