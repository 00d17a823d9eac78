"""Runs the user's `async def` functions from ordinary code."""

import asyncio
import inspect
import weakref
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import Any


class EventLoop:
    """An event loop in its own thread, so that it also works if the caller already runs in a loop (a notebook)."""

    def __init__(self) -> None:
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        Thread(target=_serve, args=(started,), name="user-function", daemon=True).start()
        self._loop, closing = started.result()
        # Garbage collection may call this at any place of any thread, so it must not wait for a lock.
        weakref.finalize(self, _close, self._loop, closing)

    def run(self, start: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """The result of the coroutine that `start` creates. Raises what it raises."""

        async def call() -> tuple[Any, BaseException | None]:
            try:
                return await start(), None
            except BaseException as error:  # noqa: BLE001 - raised below; a SystemExit here would end the loop
                return None, error

        result, error = asyncio.run_coroutine_threadsafe(call(), self._loop).result()
        if error is not None:
            raise error
        return result


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling the function or callable object returns a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


async def gathered(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The results of an `async def` for each tuple of arguments. All calls run concurrently."""
    return await asyncio.gather(*(function(*arguments) for arguments in calls))


def _serve(started: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]") -> None:
    async def until_closed() -> None:
        closing = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), closing))
        await closing.wait()

    asyncio.run(until_closed())


def _close(loop: asyncio.AbstractEventLoop, closing: asyncio.Event) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(closing.set)
