"""Runs the user's `async def` functions from ordinary code."""

import asyncio
import inspect
import weakref
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class EventLoop:
    """An event loop in its own thread, so that it also works if the caller already runs in a loop (a notebook)."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "user-function")
        self._runner = asyncio.Runner()
        weakref.finalize(self, _close, self._thread, self._runner)

    def run(self, start: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """The result of the coroutine that `start` creates."""
        return self._thread.submit(lambda: self._runner.run(start())).result()


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling the function or callable object returns a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


async def gathered(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The results of an `async def` for each tuple of arguments. All calls run concurrently."""
    return await asyncio.gather(*(function(*arguments) for arguments in calls))


def _close(thread: ThreadPoolExecutor, runner: asyncio.Runner) -> None:
    thread.submit(runner.close)
    thread.shutdown()
