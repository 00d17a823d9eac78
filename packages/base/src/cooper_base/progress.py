"""Workers report progress here; listeners show it or cancel the step."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


class BrokenOff(BaseException):
    """Raised by a listener to cancel the work. It is not an Exception, so that no handler of errors catches it."""


@dataclass(frozen=True)
class Progress:
    """How far the work is: `done` of `total` units of the innermost of `parts`, which are named from the outermost.

    A `total` of 0 is not known. With `ceiling`, the work may end before `total`.
    """

    parts: tuple[str, ...]
    done: int = 0
    total: int = 0
    unit: str = ""
    note: str = ""
    ceiling: bool = False


@dataclass(frozen=True)
class Listener:
    """`on_progress` gets all progress and may raise BrokenOff. `on_weights_change` is called before weights change."""

    on_progress: Callable[[Progress], None]
    on_weights_change: Callable[[], None] = lambda: None


_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())
_parts: ContextVar[tuple[str, ...]] = ContextVar("parts", default=())


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """While the context is open, this listener gets the thread's progress too, before the listeners around it."""
    token = _listeners.set((listener, *_listeners.get()))
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def part(name: str) -> Iterator[None]:
    """The name of the work that the context contains."""
    token = _parts.set((*_parts.get(), name))
    try:
        tell()
        yield
    finally:
        _parts.reset(token)


def tell(done: int = 0, total: int = 0, unit: str = "", note: str = "", ceiling: bool = False) -> None:
    """Report how far the innermost part is; for the arguments see `Progress`."""
    for listener in _listeners.get():
        listener.on_progress(Progress(_parts.get(), done, total, unit, note, ceiling))


def awaited(future: Future[T], note: Callable[[], str]) -> T:
    """The result of the future. Meanwhile, what `note` says is reported every second."""
    while not wait([future], 1.0).done:
        if text := note():
            tell(note=text)
    return future.result()


def weights_change() -> None:
    """Report that the step begins to change weights, so it can no longer be cancelled without a trace."""
    for listener in _listeners.get():
        listener.on_weights_change()
