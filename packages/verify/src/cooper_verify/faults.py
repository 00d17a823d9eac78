"""Faults: what raises while an answer is graded costs that answer its verdict, and no other.

A rule reads texts that nobody has seen before, and a grader may be anything. An exception of Cooper's own is a fault of
Cooper: the text has the verdict `unparsed`, or no score, the fault is counted (`rule/faults`) and written down with its
texts so that it can be reported, and the batch, the service or the trainer goes on. An exception of the user's own code
is a bug that its author wants to see: it ends what was asked, except where a whole file is measured (`users_too`).

With the environment variable `COOPER_STRICT` a fault is raised, as in the tests of this repository.
"""

import logging
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from cooper_base.errors import EngineLost, InputError, MissingExtraError, users_function
from cooper_base.files.durable import append_line

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Reply = TypeVar("Reply")

STRICT = "COOPER_STRICT"
"""An environment variable. If it is set, faults are raised."""
FAULT = "fault"
"""Why an answer has no opinion on which a grader has raised."""
FAULTS_FILE = "faults.jsonl"
"""The file in a run's folder that has its faults."""
MOST_WRITTEN = 1000
"""Faults that one process writes down. The others are counted."""
_LONGEST = 20_000
"""Characters of a text that are written down."""


@dataclass(frozen=True)
class Fault:
    """An exception on one text."""

    where: str
    """The function or the grader that raised it."""
    error: str
    """Its type and message."""
    traceback: str
    texts: Sequence[str]
    """What it was asked, such as a question, a reference and a completion."""


class _Faults:
    """The faults of this process. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.count = self._written = 0
        self._kinds: set[tuple[str, str]] = set()
        self._writers: list[Callable[[Fault], None]] = []

    def note(self, fault: Fault) -> None:
        with self._lock:
            kind = (fault.where, fault.error.partition(":")[0])
            is_new, writers = kind not in self._kinds, [*self._writers]
            self._kinds.add(kind)
            self.count += 1
            self._written += bool(writers)
            if self._written > MOST_WRITTEN:
                writers = []
        if is_new:
            logger.warning(
                "%s: a text could not be graded, and counts as unparsed or as no opinion: %s; others of this kind are "
                "only counted",
                fault.where,
                fault.error,
            )
        for write in writers:
            write(fault)

    @contextmanager
    def passed_to(self, write: Callable[[Fault], None]) -> Iterator[None]:
        with self._lock:
            self._writers.append(write)
        try:
            yield
        finally:
            with self._lock:
                self._writers.remove(write)


_faults = _Faults()


def faults_so_far() -> int:
    """How many faults there were in this process."""
    return _faults.count


@contextmanager
def faults_written_to(path: Path) -> Iterator[None]:
    """While it lasts, the faults of this process are appended to this file: JSON lines, with the texts. The file is
    made with the first of them."""

    def write(fault: Fault) -> None:
        try:
            append_line(path, asdict(fault))
        except OSError as error:  # a fault of ours must not end a run because its disk is full, either
            logger.warning("%s: cannot be written (%s)", path, error)

    with _faults.passed_to(write):
        yield


def note_fault(where: str, error: str, texts: Sequence[Any]) -> None:
    """Count, log and write down the fault whose traceback is `error`. With COOPER_STRICT, raises RuntimeError."""
    if os.environ.get(STRICT):
        raise RuntimeError(f"{where}: raised on one text:\n{error}")
    _note(where, error, texts)


def _note(where: str, error: str, texts: Sequence[Any]) -> None:
    last = next((line for line in reversed(error.splitlines()) if line.strip()), "")
    shown = [(text if isinstance(text, str) else repr(text))[:_LONGEST] for text in texts]
    _faults.note(Fault(where, last[:1000], error[-_LONGEST:], shown))


def is_fault(error: Exception, users_too: bool = False) -> bool:
    """Whether an exception is a fault, which costs a text: neither bad input, nor the loss of an engine or a library.
    One of the user's own code is, with `users_too`."""
    if isinstance(error, InputError | MissingExtraError | EngineLost):
        return False
    return users_too or users_function(error) is None


def isolated(
    where: str,
    ask: Callable[[Sequence[Item]], Sequence[Reply]],
    items: Sequence[Item],
    instead: Callable[[Item], Reply],
    texts: Callable[[Item], Sequence[Any]],
    users_too: bool = False,
) -> list[Reply]:
    """What `ask` replies on the items, one for each; `instead` of it for an item on which it raises, as a fault."""

    def noted(item: Item, error: Exception) -> Reply:
        is_users = users_function(error) is not None
        (_note if is_users else note_fault)(where, "".join(traceback.format_exception(error)), texts(item))
        return instead(item)

    return halved(ask, items, noted, lambda error: is_fault(error, users_too))


def halved(
    ask: Callable[[Sequence[Item]], Sequence[Reply]],
    items: Sequence[Item],
    instead: Callable[[Item, Exception], Reply],
    costs_one: Callable[[Exception], bool],
) -> list[Reply]:
    """What `ask` replies on the items, one reply for each. Raises the errors that do not cost one item alone.

    Where it raises, it is asked again on either half of the items, until the one at fault stands alone. So it is asked
    about most of the others once more, and at most as often as the items can be halved.
    """
    try:
        return [*ask(items)] if items else []
    except Exception as error:
        if not costs_one(error):
            raise
        if len(items) == 1:
            return [instead(items[0], error)]
    half = len(items) // 2
    return [reply for part in (items[:half], items[half:]) for reply in halved(ask, part, instead, costs_one)]
