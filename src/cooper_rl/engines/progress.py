"""How far the work inside a step is. Parts of it tell; whoever listens may show that, or break the work off."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


class BrokenOff(BaseException):
    """Raised by a listener to end the work under way. No error, so that nothing handles it as one."""


@dataclass(frozen=True)
class Progress:
    """`parts` are the names of the work under way, outermost first; `done` of `total` (0: not known) is its innermost.

    `ceiling` says that the work may end before `total`.
    """

    parts: tuple[str, ...]
    done: int = 0
    total: int = 0
    unit: str = ""
    note: str = ""
    ceiling: bool = False


@dataclass(frozen=True)
class Listener:
    """`told` hears of all progress, and may raise BrokenOff. `changes` is called before a model's weights change."""

    told: Callable[[Progress], None]
    changes: Callable[[], None] = lambda: None


_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())
_parts: ContextVar[tuple[str, ...]] = ContextVar("parts", default=())


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """What this thread does inside is told to this listener too, before those around it."""
    token = _listeners.set((listener, *_listeners.get()))
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def part(name: str) -> Iterator[None]:
    """The work inside, by this name."""
    token = _parts.set((*_parts.get(), name))
    try:
        tell()
        yield
    finally:
        _parts.reset(token)


def tell(done: int = 0, total: int = 0, unit: str = "", note: str = "", ceiling: bool = False) -> None:
    """Say how far the part under way is; for the arguments see `Progress`."""
    for listener in _listeners.get():
        listener.told(Progress(_parts.get(), done, total, unit, note, ceiling))


def weights_change() -> None:
    """Say that from now on the weights are no longer those with which the step began."""
    for listener in _listeners.get():
        listener.changes()
