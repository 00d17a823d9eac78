"""A client of OpenAI-compatible chat servers. It sends requests concurrently, retries them, and returns failures."""

import asyncio
import logging
import os
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, Self, TypeVar

import openai
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from cooper_rl.clients.chat_config import ChatConfig, Message
from cooper_rl.clients.chat_reply import (
    LARGEST_BODY,
    LONGEST_WAIT_S,
    OUTAGE,
    ChatReply,
    RequestFailed,
    raise_for_status,
    read_reply,
    read_to,
)
from cooper_rl.errors import InputError

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ChatClient:
    """Sends chats from an event loop in a thread of its own, so that the caller can train a model in the meantime.

    The constructor raises InputError if `api_key_env` names a variable that is not set.
    """

    def __init__(self, config: ChatConfig):
        self.config = config
        self.responding = True
        """Whether the server answered at least one request of the last call."""
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
        chat_seeds: Sequence[int | None] = [None] * len(chats) if seeds is None else seeds
        asked = list(zip(chats, chat_seeds, strict=True))
        replies: list[ChatReply] = []
        if not self.responding and asked:
            replies = [await self._reply(*asked[0], deadline, max_retries=0)]
            if replies[0].failure in OUTAGE:
                detail = f"the server does not answer: {replies[0].failure}"
                return replies + [ChatReply(failure="not_sent", detail=detail)] * (len(asked) - 1)
        rest = asked[len(replies) :]
        replies += await asyncio.gather(
            *(self._reply(chat, seed, deadline, self.config.max_retries) for chat, seed in rest)
        )
        self._note(replies)
        return replies

    def check(self) -> None:
        """Send one short chat. Raises InputError, with hints on what to check, if the server does not answer it."""
        chat = [{"role": "user", "content": "Reply with the word ready."}]
        reply = self.run(self._reply(chat, None, None, self.config.max_retries)).result()
        if reply.failure not in (None, "empty", "truncated"):
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
        self.responding = responding

    async def _reply(
        self, chat: list[Message], seed: int | None, deadline: float | None, max_retries: int
    ) -> ChatReply:
        reply = ChatReply(failure="malformed")
        retrying = AsyncRetrying(
            stop=stop_after_attempt(max_retries + 1),
            wait=self._wait_s,
            retry=retry_if_exception(lambda error: isinstance(error, RequestFailed) and error.transient),
            reraise=True,
        )
        try:
            async with asyncio.timeout_at(deadline), self._slots:
                async for attempt in retrying:
                    with attempt:
                        reply = await self._request(chat, seed)
        except TimeoutError:
            return ChatReply(failure="deadline", detail="the time for all requests together ran out")
        except RequestFailed as error:
            logger.debug("chat request failed: %s: %s", error.kind, error)
            return ChatReply(failure=error.kind, detail=str(error))
        return reply

    def _wait_s(self, state: RetryCallState) -> float:
        """Seconds before a retry: the usual wait, or the server's `Retry-After` if that is longer."""
        wait = self.config.retry_wait_s
        error = state.outcome.exception() if state.outcome else None
        asked_for = error.wait_s if isinstance(error, RequestFailed) else 0.0
        return max(wait_exponential_jitter(initial=wait, max=LONGEST_WAIT_S, jitter=wait)(state), asked_for)

    async def _request(self, chat: list[Message], seed: int | None) -> ChatReply:
        config = self.config
        sending = self._openai.chat.completions.with_streaming_response.create(
            model=config.model,
            messages=chat,  # pyright: ignore[reportArgumentType]
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            extra_body=config.extra_body,
            seed=openai.omit if seed is None or not config.send_seed else seed,
            logprobs=True if config.top_logprobs else openai.omit,
            top_logprobs=config.top_logprobs or openai.omit,
        )
        try:
            # The HTTP client's own timeout restarts with every chunk, so a server that sends slowly never reaches it.
            async with asyncio.timeout(config.timeout_s), sending as response:
                body = await read_to(response.iter_bytes(), LARGEST_BODY)
        except TimeoutError as error:
            raise RequestFailed("timeout", f"no reply within {config.timeout_s} s", transient=True) from error
        except Exception as error:  # errors of openai's HTTP library come through, under no fixed type
            cause = error.__cause__ or error
            if isinstance(cause, RequestFailed):
                raise cause from None
            raise RequestFailed("connection", str(cause) or type(cause).__name__, transient=True) from error
        return read_reply(body)


def read_api_key(config: ChatConfig) -> str:
    """The key that the server asks for. Raises InputError if `api_key_env` names a variable that is not set."""
    if config.api_key_env is None:
        return "none"  # the openai client insists on a key; servers without one ignore it
    key = os.environ.get(config.api_key_env)
    if not key:
        raise InputError(
            f"api_key_env: environment variable {config.api_key_env} is not set; set it to the server's key"
        )
    return key
