"""Lets only one process at a time write a folder (of a run, an arena, a demo or a server) or a file, and lets a signal
stop that process cleanly."""

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO
from weakref import finalize

from cooper_base.closing import Closing
from cooper_base.errors import InputError
from cooper_base.files.durable import REFUSED, check_name, opened

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there
    fcntl = None

logger = logging.getLogger(__name__)

_BUSY = "{folder}: %s in this folder%s ({holder}); wait for it, stop it, or choose another %s"
BUSY_RUN = (_BUSY % ("a process is training", " already", "name")) + "; `cooper watch {folder}` shows it"
BUSY_RUNS = _BUSY % ("another call is running its cells or arms", "", "--out")
BUSY_OUT = _BUSY % ("another call is writing", "", "folder")
BUSY_FILE = "{path}: another call is writing it ({holder}); wait for it, stop it, or choose another output"

UNWRITABLE = (
    "{folder}: cannot be written ({why}); choose another output_dir or name, or make room or get the right there"
)

STOPPING = "stopping as soon as nothing is lost by it; interrupt again to stop at once"

LOCK = ".lock"
"""The file that is locked."""
_HOLDER = "process "
"""The beginning of what it says of the process that holds it."""
_HERE: set[Path] = set()
"""The lock files that this process holds. They must not be opened twice, because under POSIX closing either of them
drops the lock."""


def check_writable(directory: Path) -> None:
    """Raises InputError for a folder that cannot be created or written, as far as this can be found out without doing
    it."""
    there = next(folder for folder in (directory, *directory.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise InputError(UNWRITABLE.format(folder=directory, why=f"{there} is a file"))
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(UNWRITABLE.format(folder=directory, why=f"you may not write in {there}"))


class FolderLock(Closing):
    """A lock of a folder. It is held until it is closed or its process ends in any way.

    Not the package `filelock`: its `flock` goes on in a fork after this process was killed, and it neither names who
    holds the lock, to other hosts too, nor lets others look (`holder_of`) without taking it.
    """

    def __init__(self, directory: Path, busy: str = BUSY_RUN) -> None:
        """Raises InputError with the text `busy`, of `{folder}` and `{holder}`, if another process holds the folder,
        and for a folder that cannot be written.
        """
        self._path = directory / LOCK
        self._made = not directory.exists()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = _taken(self._path)
        except _Busy as error:
            raise InputError(busy.format(folder=directory, holder=error)) from error
        except OSError as error:
            raise InputError(UNWRITABLE.format(folder=directory, why=error.strerror)) from error

    def close(self) -> None:
        """Release the lock."""
        if not self._file.closed:
            self._file.truncate(0)
            self._file.close()
            _HERE.discard(self._path.resolve())

    def withdraw(self) -> None:
        """Release the lock, and delete the folder if it did not exist before: nothing was written into it."""
        self.close()
        if self._made and sorted(self._path.parent.iterdir()) == [self._path]:
            self._path.unlink()
            self._path.parent.rmdir()


class FileLock(Closing):
    """A lock of a file, or of a folder that gets its name only when it is whole. It is a hidden file beside it, which
    is gone once the lock is closed; after a kill it stays, and locks nothing.
    """

    def __init__(self, path: Path) -> None:
        """Raises InputError if another call holds the lock, in this process too, and if nothing can be written
        there."""
        check_name(path)
        self._path = path.with_name(f".{path.name}{LOCK}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = self._newest(path)
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror}); choose another output") from error
        self.close = finalize(self, _release, self._path, file)
        """Releases the lock, as the end of this object does."""
        self.close.atexit = False

    def _newest(self, path: Path) -> TextIO:
        """The locked file that has the name: another process may delete its own between opening and locking it."""
        while True:
            try:
                if self._path.resolve() in _HERE:  # a lock does not keep out its own process
                    raise _Busy(this_process())
                file = _taken(self._path)
            except _Busy as error:
                raise InputError(BUSY_FILE.format(path=path, holder=error)) from error
            with suppress(FileNotFoundError):
                if fcntl is None or os.path.samestat(os.fstat(file.fileno()), self._path.lstat()):
                    return file
            file.close()
            _HERE.discard(self._path.resolve())


def holder_of(directory: Path) -> str | None:
    """A description of the process that holds the folder; None if nobody does, or on Windows. Any number of processes
    may ask at once."""
    path = directory / LOCK
    if path.resolve() in _HERE:
        return this_process()
    if fcntl is None or not path.is_file():
        return None
    with path.open(encoding="utf-8", errors="replace") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return file.read().strip() or "another process"
    return None


def this_process() -> str:
    """A description of this process, for other processes."""
    return f"{_HOLDER}{os.getpid()} on {socket.gethostname()}"


def _release(path: Path, file: TextIO) -> None:
    if fcntl is not None:  # Windows deletes no open file
        path.unlink(missing_ok=True)
    file.close()
    _HERE.discard(path.resolve())


class _Busy(Exception):
    """Another process holds a lock; its text says which one."""


def _taken(path: Path) -> TextIO:
    """The file at this path, locked and with the name of this process in it. Raises `_Busy`, OSError, and InputError
    for anything that is no lock of ours.
    """
    file = os.fdopen(opened(path, os.O_RDWR | os.O_CREAT), "r+", encoding="utf-8", errors="replace")
    holder = file.read(200).strip()
    if not _HOLDER.startswith(holder[: len(_HOLDER)]):
        file.close()
        raise InputError(REFUSED.format(path=path, what="holds a text that is not of a lock"))
    if fcntl is None:
        return file
    try:
        _lock(file)
    except OSError as error:
        file.seek(0)
        holder = file.read().strip() or "elsewhere"
        file.close()
        raise _Busy(holder) from error
    with suppress(OSError):  # other processes read this name; if a full disk refuses it, the lock still holds
        file.seek(0)
        file.truncate()
        file.write(this_process())
        file.flush()
    _HERE.add(path.resolve())
    return file


def _lock(file: TextIO) -> None:
    """Lock the file. Tries a second time, because `holder_of` in another process may just be looking."""
    assert fcntl is not None
    # Not `flock`, which the verifier's processes would inherit, and hold when this one has been killed.
    with suppress(OSError):
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    time.sleep(0.1)
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _end(patience_s: float) -> None:
    """End as by a second SIGTERM, also where the main thread is inside a long call and hears no signal."""
    logger.warning("ended %.0f s after SIGTERM, in the middle of a step; interrupts (SIGINT) wait for it", patience_s)
    os._exit(128 + signal.SIGTERM)


@contextmanager
def stop_on_signal(request_stop: Callable[[], None], patience_s: float | None = None) -> Iterator[None]:
    """The first signal calls `request_stop`; a second one goes to the earlier handlers. Only in the main thread.

    So long after SIGTERM, the process ends, if the block has not: whoever sends it kills soon.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore_handlers() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    stopping, at_last = False, threading.Timer(patience_s or 0, _end, (patience_s,))
    at_last.daemon = True

    def on_signal(number: int, frame: Any) -> None:
        nonlocal stopping
        if stopping:  # only this signal: Python complains if a signal is pending while its handler is removed
            signal.signal(number, previous[signal.Signals(number)])
            signal.raise_signal(number)
            return
        stopping = True
        request_stop()
        if number == signal.SIGTERM and patience_s is not None:
            at_last.start()
        # In a thread of its own, because this one may be in the middle of a line of the same log.
        threading.Thread(target=logger.warning, args=(STOPPING,), daemon=True).start()

    for number in previous:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        at_last.cancel()
        restore_handlers()
