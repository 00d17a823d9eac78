"""OpenAI-compatible chat servers: settings, replies and failures, and a client that sends and retries concurrently.

The libraries `openai` and `tenacity` (the extra `judges`) are imported when a client is made: settings are checked
before, and graders that ask no server need neither.
"""

import asyncio
import json
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field

from cooper_base.closing import Closing
from cooper_base.config.base import Config
from cooper_base.data.text import whole_characters
from cooper_base.errors import InputError, MissingExtraError
from cooper_verify.clients.address import check_address, check_key
from cooper_verify.clients.bounded import OversizedError, bounded_reply, read_to

if TYPE_CHECKING:
    from tenacity import RetryCallState

logger = logging.getLogger(__name__)

T = TypeVar("T")

Message = dict[str, str]
"""`{"role": "system" | "user" | "assistant", "content": …}`."""

HANDLING = frozenset({"api_key_env", "timeout_s", "max_retries", "concurrency"})
"""Settings of `ChatConfig` that decide how a server is asked. They do not change its replies."""


class ChatConfig(Config):
    """A chat model behind an OpenAI-compatible server."""

    base_url: Annotated[str, AfterValidator(check_address)]
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
    """Retries after a timeout, a lost connection, a malformed body, or HTTP 408, 409, 429 or 5xx. The first wait is
    0.5 to 1 s, and each later one about twice as long, up to 20 s. A `Retry-After` from the server is
    respected up to 20 s; if the server asks for more, the request fails at once."""
    concurrency: int = Field(default=16, ge=1)
    """Most requests that are open at once. Lower it for a server that limits requests a minute."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Additional fields of the request body, such as `{"chat_template_kwargs": {"enable_thinking": false}}`. They win
    over those of Cooper: `{"seed": null}` is for a server that refuses a seed."""


_HttpFailure = Literal["timeout", "connection", "http_4xx", "http_429", "http_5xx", "malformed", "oversized"]
FailureKind = Literal[_HttpFailure, "empty", "truncated", "deadline", "not_sent"]
"""Why there is no usable reply: the `timeout` of one request, a refused or lost `connection`, an HTTP status, a body
that is not a chat completion (`malformed`) or too long (`oversized`), a text that is `empty` or `truncated`, the
`deadline` for all requests together, or a request `not_sent` because the server had stopped answering."""

OUTAGE = frozenset({"timeout", "connection", "http_429", "http_5xx", "malformed", "oversized", "deadline", "not_sent"})
"""Failures of the server, which say nothing about the chat that was sent."""

LARGEST_BODY = 8 * 2**20
"""Most bytes of a response. A long reply with the log-probabilities of every token takes a third of this."""
LARGEST_ERROR = 2**16
FIRST_WAIT_S = 0.5
"""Wait before the first retry, and as much again at most, at random. It doubles with each further retry."""
LONGEST_WAIT_S = 20.0
"""Longest wait before a retry. If a server asks for more (`Retry-After`), the request is not retried."""
RETRIED_STATUS = (408, 409, 429)
CANDIDATES = 20
"""Candidates for a reply's first token whose log-probabilities are requested: the most that servers give."""


@dataclass(frozen=True)
class ChatReply:
    """The outcome of one request: a `text`, or a `failure` with its `detail`.

    A `truncated` reply has a text as well. `first_token` maps candidates for the first token to their log-probabilities
    (nats), if the client asks for them and the server sent them.
    """

    text: str = ""
    failure: FailureKind | None = None
    detail: str = ""
    first_token: dict[str, float] = field(default_factory=dict)

    @property
    def heard(self) -> bool:
        """Whether the model replied at all, even with an empty or truncated text. If not, the server failed."""
        return self.failure in (None, "empty", "truncated")


class ChatClient(Closing):
    """Sends chats from an event loop in a thread of its own.

    Raises InputError if `api_key_env` is not set or no key, and MissingExtraError without the extra `judges`.

    With `first_token_only`, replies are one token long, and the server is asked for the candidates' log-probabilities.
    """

    def __init__(self, config: ChatConfig, first_token_only: bool = False):
        self.config = config.model_copy(update={"max_tokens": 1}) if first_token_only else config
        self._candidates = CANDIDATES if first_token_only else None
        self.responding = True
        """Whether the server answered at least one request of the last call."""
        self._outage_reported = False
        try:
            import openai  # noqa: PLC0415 - an extra, and slow to import
            import tenacity  # noqa: F401, PLC0415 - an extra
        except ImportError as error:
            raise MissingExtraError(
                f"{config.base_url}: a chat server needs openai and tenacity (the extra `judges` of cooper-verify): "
                "pip install openai tenacity"
            ) from error
        self._omit = openai.omit
        http_client = openai.DefaultAsyncHttpxClient(event_hooks={"response": [raise_for_status]})
        self._openai = openai.AsyncOpenAI(
            base_url=config.base_url, api_key=read_api_key(config), max_retries=0, timeout=None, http_client=http_client
        )
        self._slots = asyncio.Semaphore(config.concurrency)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chat-client", daemon=True)
        self._thread.start()

    def submit(self, chats: Sequence[list[Message]], seeds: Sequence[int] | None = None) -> "Future[list[ChatReply]]":
        """Send every chat. The future holds one reply per chat, in order; a failed request also gives a reply."""
        return self.run(self.complete(chats, seeds))

    def run(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run a coroutine on the client's event loop. Raises RuntimeError after `close`."""
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("the chat client is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def complete(
        self, chats: Sequence[list[Message]], seeds: Sequence[int] | None = None, deadline: float | None = None
    ) -> list[ChatReply]:
        """`submit` for code on the client's event loop. Open requests are given up at `deadline`, in that loop's time.

        If the server answered nothing in the previous call, the first chat is sent alone and without retries, and the
        others follow only if it is answered. A server that is down then costs one request per call.
        """
        asked = list(zip(chats, [None] * len(chats) if seeds is None else seeds, strict=True))
        replies: list[ChatReply] = []
        if not self.responding and asked:
            replies = [await self._reply(*asked[0], deadline, max_retries=0)]
            if replies[0].failure in OUTAGE:
                detail = f"the server does not answer: {replies[0].failure}"
                return replies + [ChatReply(failure="not_sent", detail=detail)] * (len(asked) - 1)
        retries = self.config.max_retries
        replies += await asyncio.gather(
            *(self._reply(*request, deadline, retries) for request in asked[len(replies) :])
        )
        self._note(replies)
        return replies

    def check(self) -> None:
        """Send one short chat. Raises InputError, with hints on what to check, if the server does not answer it."""
        chat = [{"role": "user", "content": "Reply with the word ready."}]
        reply = self.run(self._reply(chat, None, None, self.config.max_retries)).result()
        if not reply.heard:
            raise InputError(
                f"chat server {self.config.base_url}, model {self.config.model!r}: {reply.failure}: {reply.detail}; "
                "check base_url, model and api_key_env, and that the server is up"
            )

    def close(self) -> None:
        """Cancel open requests, close the connections and end the thread. A second call does nothing."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _shut_down(self) -> None:
        work = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        await self._openai.close()
        await asyncio.get_running_loop().shutdown_default_executor()

    def _note(self, replies: Sequence[ChatReply]) -> None:
        """Log once that the server has stopped answering, and once that it is back."""
        responding = not replies or any(reply.failure not in OUTAGE for reply in replies)
        if self.responding and not responding:
            logger.warning(
                "chat server %s answered none of %d requests (%s: %s); each call sends only one until it answers again",
                self.config.base_url, len(replies), replies[-1].failure, replies[-1].detail,
            )  # fmt: skip
        elif responding and not self.responding:
            logger.warning("chat server %s answers again", self.config.base_url)
            self._outage_reported = False
        self.responding = responding

    async def _reply(
        self, chat: list[Message], seed: int | None, deadline: float | None, max_retries: int
    ) -> ChatReply:
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt  # noqa: PLC0415 - an extra

        retrying = AsyncRetrying(
            stop=stop_after_attempt(max_retries + 1),
            wait=retry_wait(FIRST_WAIT_S, LONGEST_WAIT_S),
            retry=retry_if_exception(lambda error: isinstance(error, RequestFailed) and error.transient),
            before_sleep=self._report,
            reraise=True,
        )
        try:
            async with asyncio.timeout_at(deadline), self._slots:
                return await retrying(self._request, chat, seed)
        except TimeoutError:
            return ChatReply(failure="deadline", detail="the time for all requests together ran out")
        except RequestFailed as error:
            logger.debug("chat request failed: %s: %s", error.kind, error)
            return ChatReply(failure=error.kind, detail=str(error))

    def _report(self, state: "RetryCallState") -> None:
        """Log the first failure of an outage at once, because the retries may take minutes."""
        error = state.outcome and state.outcome.exception()
        kind = getattr(error, "kind", None)
        if kind in ("connection", "timeout") and self.responding and not self._outage_reported:
            self._outage_reported = True
            logger.warning(
                "chat server %s: %s: %s; trying again, up to %d times; is it running at this base_url?",
                *(self.config.base_url, kind, error, self.config.max_retries),
            )

    async def _request(self, chat: list[Message], seed: int | None) -> ChatReply:
        config = self.config
        sending = self._openai.chat.completions.with_streaming_response.create(
            model=config.model,
            messages=chat,  # pyright: ignore[reportArgumentType]
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            extra_body=config.extra_body,
            seed=self._omit if seed is None else seed,
            logprobs=True if self._candidates else self._omit,
            top_logprobs=self._candidates or self._omit,
        )
        try:
            _, body = await bounded_reply(
                sending, lambda response: response.iter_bytes(), config.timeout_s, LARGEST_BODY
            )
        except TimeoutError as error:
            raise RequestFailed("timeout", f"no reply within {config.timeout_s} s", transient=True) from error
        except OversizedError as error:
            raise RequestFailed("oversized", str(error)) from error
        except Exception as error:  # errors of openai's HTTP library come through, under no fixed type
            cause = error.__cause__ or error
            if isinstance(cause, RequestFailed):
                raise cause from None
            raise RequestFailed("connection", str(cause) or type(cause).__name__, transient=True) from error
        return read_reply(body)


def read_api_key(config: ChatConfig) -> str:
    """The key that the server asks for. Raises InputError if `api_key_env` names a variable that is not set, or whose
    text no header can hold."""
    if (name := config.api_key_env) is None:
        return "none"  # the openai client insists on a key; servers without one ignore it
    key = os.environ.get(name)
    if not key:
        raise InputError(f"api_key_env: environment variable {name} is not set; set it to the server's key")
    return check_key(key, f"api_key_env: the key in {name}")


class RequestFailed(Exception):
    """A failed request. A `transient` failure may go away on a retry after `wait_s` seconds."""

    def __init__(self, kind: FailureKind, detail: str, transient: bool = False, wait_s: float = 0.0):
        super().__init__(detail)
        self.kind: FailureKind = kind
        self.transient, self.wait_s = transient, wait_s


async def raise_for_status(response: Any) -> None:
    """Hook of openai's HTTP client. Raises RequestFailed, with the start of the body, for a status of 400 or above."""
    status = response.status_code
    if status < 400:
        return
    body = await read_to(response.aiter_bytes(), LARGEST_ERROR)
    kind: FailureKind = "http_429" if status == 429 else "http_5xx" if status >= 500 else "http_4xx"
    wait_s = retry_after_s(response.headers.get("retry-after", ""))
    transient = (status in RETRIED_STATUS or status >= 500) and wait_s <= LONGEST_WAIT_S
    raise RequestFailed(kind, f"HTTP {status}: {body[:200].decode(errors='replace')}", transient, wait_s)


def read_reply(body: bytes) -> ChatReply:
    """Parsed here because openai lets malformed bodies through. Raises RequestFailed if the body holds no reply."""
    try:
        whole = json.loads(body)
        choice = whole["choices"][0]
        content, finish_reason = choice["message"]["content"], choice.get("finish_reason")
        tokens = (choice.get("logprobs") or {}).get("content") or []
        first_token = {str(c["token"]): _logprob(c["logprob"]) for c in tokens[0]["top_logprobs"]} if tokens else {}
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise RequestFailed("malformed", f"not a chat completion: {body[:200]!r}", transient=True) from error
    text = whole_characters(content) if isinstance(content, str) else ""
    if finish_reason == "length":
        return ChatReply(text, "truncated", "the reply reached max_tokens", first_token)
    if not text.strip():
        return ChatReply("", "empty", "the reply has no text", first_token)
    return ChatReply(text, first_token=first_token)


def _logprob(value: Any) -> float:
    if (logprob := float(value)) <= 1e-3:  # rounding may lift it slightly above zero; NaN is refused too
        return logprob
    raise ValueError(f"{logprob} is not a log-probability")


def retry_wait(first_s: float, longest_s: float) -> "Callable[[RetryCallState], float]":
    """Seconds before a retry, for `tenacity`: about twice the last wait, or the error's `wait_s` if that is longer."""
    from tenacity import wait_exponential, wait_random  # noqa: PLC0415 - an extra

    usual = wait_exponential(multiplier=first_s, max=longest_s) + wait_random(0, first_s)

    def wait_s(state: "RetryCallState") -> float:
        error = state.outcome.exception() if state.outcome else None
        return max(min(usual(state), longest_s), getattr(error, "wait_s", 0.0))

    return wait_s


def retry_after_s(retry_after: str) -> float:
    """`Retry-After` in seconds; 0 for a date or nonsense, so that the usual wait applies."""
    return float(retry_after) if retry_after.isdecimal() else 0.0
