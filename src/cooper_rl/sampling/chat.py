"""A client of OpenAI-compatible chat servers: concurrent, retried, and without exceptions for a bad answer."""

import asyncio
import json
import logging
import os
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeVar

import openai
from pydantic import Field
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from cooper_rl.configuration import Config
from cooper_rl.errors import InputError

logger = logging.getLogger(__name__)

FailureKind = Literal["timeout", "connection", "http_status", "malformed", "empty", "truncated"]
Message = dict[str, str]
"""`{"role": "system" | "user" | "assistant", "content": …}`."""

LONGEST_WAIT_S = 20.0
RETRIED_STATUS = (408, 409, 429)
T = TypeVar("T")


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
    """Seconds before the first retry; each later wait is about twice as long, up to 20 s."""
    concurrency: int = Field(default=16, ge=1)
    """Most requests under way at once."""
    send_seed: bool = True
    """Send the seed a caller gives with each request; switch off for a server that refuses the field."""
    top_logprobs: int = Field(default=0, ge=0, le=20)
    """Ask for the log-probabilities of this many candidates for the reply's first token."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request body, such as `{"chat_template_kwargs": {"enable_thinking": false}}`."""


@dataclass(frozen=True)
class ChatReply:
    """The outcome of one request: `text`, or the `failure` that took its place with what is known about it.

    A `truncated` reply has its text too. `first_token` maps candidates for the first token to log-probabilities
    (nats), where `top_logprobs` asked for them and the server sent them.
    """

    text: str = ""
    failure: FailureKind | None = None
    detail: str = ""
    first_token: dict[str, float] = field(default_factory=dict)


class _RequestFailed(Exception):
    def __init__(self, kind: FailureKind, detail: str, transient: bool):
        super().__init__(detail)
        self.kind: FailureKind = kind
        self.transient = transient


class ChatClient:
    """Sends chats from an event loop in a thread of its own, so that the caller can train a model meanwhile.

    Raises InputError at construction when `api_key_env` names a variable that is not set.
    """

    def __init__(self, config: ChatConfig):
        self.config = config
        self._openai = openai.AsyncOpenAI(
            base_url=config.base_url, api_key=_api_key(config), max_retries=0, timeout=config.timeout_s
        )
        self._slots = asyncio.Semaphore(config.concurrency)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chat-client", daemon=True)
        self._thread.start()

    def submit(self, chats: Sequence[list[Message]], seeds: Sequence[int] | None = None) -> "Future[list[ChatReply]]":
        """Send every chat; the future holds one reply per chat in order, whatever went wrong with each."""
        return self.run(self.complete(chats, seeds))

    def run(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run a coroutine on the client's event loop. Raises RuntimeError after `close`."""
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("the chat client is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def complete(self, chats: Sequence[list[Message]], seeds: Sequence[int] | None = None) -> list[ChatReply]:
        """`submit` for code that runs on the client's event loop."""
        chat_seeds: Sequence[int | None] = [None] * len(chats) if seeds is None else seeds
        return await asyncio.gather(*(self._reply(chat, seed) for chat, seed in zip(chats, chat_seeds, strict=True)))

    def check(self) -> None:
        """Send one short chat. Raises InputError, saying what to look at, when the server does not answer it."""
        [reply] = self.submit([[{"role": "user", "content": "Reply with the word ready."}]]).result()
        if reply.failure not in (None, "empty", "truncated"):
            raise InputError(
                f"chat server {self.config.base_url}, model {self.config.model!r}: {reply.failure}: {reply.detail}; "
                "check base_url, model and api_key_env, and that the server is up"
            )

    def close(self) -> None:
        """Cancel what is under way, close the connections and end the thread. Closing twice does nothing."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def _shut_down(self) -> None:
        work = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        await self._openai.close()
        await asyncio.get_running_loop().shutdown_default_executor()

    async def _reply(self, chat: list[Message], seed: int | None) -> ChatReply:
        config, reply = self.config, ChatReply(failure="malformed")
        retrying = AsyncRetrying(
            stop=stop_after_attempt(config.max_retries + 1),
            wait=wait_exponential_jitter(initial=config.retry_wait_s, max=LONGEST_WAIT_S, jitter=config.retry_wait_s),
            retry=retry_if_exception(lambda error: isinstance(error, _RequestFailed) and error.transient),
            reraise=True,
        )
        try:
            async with self._slots:
                async for attempt in retrying:
                    with attempt:
                        reply = await self._request(chat, seed)
        except _RequestFailed as error:
            logger.debug("chat request failed: %s: %s", error.kind, error)
            return ChatReply(failure=error.kind, detail=str(error))
        return reply

    async def _request(self, chat: list[Message], seed: int | None) -> ChatReply:
        config = self.config
        try:
            # openai's own time-out restarts with every chunk, so a dripping server needs this outer one.
            async with asyncio.timeout(config.timeout_s):
                response = await self._openai.chat.completions.with_raw_response.create(
                    model=config.model,
                    messages=chat,  # pyright: ignore[reportArgumentType]
                    temperature=config.temperature,
                    max_tokens=config.max_tokens,
                    extra_body=config.extra_body,
                    seed=openai.omit if seed is None or not config.send_seed else seed,
                    logprobs=True if config.top_logprobs else openai.omit,
                    top_logprobs=config.top_logprobs or openai.omit,
                )
        except (TimeoutError, openai.APITimeoutError) as error:
            raise _RequestFailed("timeout", f"no reply within {config.timeout_s} s", transient=True) from error
        except openai.APIConnectionError as error:
            raise _RequestFailed("connection", str(error.__cause__ or error), transient=True) from error
        except openai.APIStatusError as error:
            transient = error.status_code in RETRIED_STATUS or error.status_code >= 500
            raise _RequestFailed("http_status", f"HTTP {error.status_code}: {error.message}", transient) from error
        return _read_body(response.http_response.text)


def _read_body(body: str) -> ChatReply:
    """The reply in a chat-completions response body. The client reads it itself: openai lets odd bodies through."""
    try:
        choice = json.loads(body)["choices"][0]
        content, finish_reason = choice["message"]["content"], choice.get("finish_reason")
        tokens = (choice.get("logprobs") or {}).get("content") or []
        first_token = {str(c["token"]): _logprob(c["logprob"]) for c in tokens[0]["top_logprobs"]} if tokens else {}
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise _RequestFailed("malformed", f"not a chat completion: {body[:200]!r}", transient=True) from error
    text = content if isinstance(content, str) else ""
    text = text.encode(errors="replace").decode()  # JSON may hold half characters, which no file can
    if finish_reason == "length":
        return ChatReply(text, "truncated", "the reply reached max_tokens", first_token)
    if not text.strip():
        return ChatReply("", "empty", "the reply has no text", first_token)
    return ChatReply(text, first_token=first_token)


def _logprob(value: Any) -> float:
    logprob = float(value)
    if not logprob <= 1e-3:  # above zero by rounding at most; not a number is refused too
        raise ValueError(f"{logprob} is no log-probability")
    return logprob


def _api_key(config: ChatConfig) -> str:
    if config.api_key_env is None:
        return "none"  # the openai client insists on a key; servers without one ignore it
    key = os.environ.get(config.api_key_env)
    if not key:
        raise InputError(
            f"api_key_env: environment variable {config.api_key_env} is not set; set it to the server's key"
        )
    return key
