"""A process of this package that can be killed: the parent's handle on it, and what such a process itself needs.

A plain subprocess needs no fork of a process that holds a model, no pickle, and no `__main__` guard in the user's
script. It reads requests as JSON lines from standard input and writes its replies, one JSON line each. It ends when its
standard input does, so that it never outlives its parent.
"""

import atexit
import json
import logging
import math
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import IO, Any, ClassVar

from cooper_base.errors import InputError
from cooper_base.packages import with_own_paths

logger = logging.getLogger(__name__)


class Budget:
    """CPU seconds that verdicts may still take. Safe to use from several threads."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._lock = threading.Lock()

    def spend(self, seconds: float) -> None:
        with self._lock:
            self._left -= seconds

    @property
    def is_spent(self) -> bool:
        return self._left <= 0


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def cpu_budget(seconds: float) -> Iterator[Budget]:
    """While it lasts, all verdicts that this thread asks for share these CPU seconds. Later ones are `timeout`."""
    budget = Budget(seconds)
    token = _budget.set(budget)
    try:
        yield budget
    finally:
        _budget.reset(token)


def current_budget() -> Budget:
    """That of `cpu_budget`, or one without an end."""
    return _budget.get() or Budget(math.inf)


TRIES = 2
"""How often a question is asked whose process is lost."""
FROM_OUTSIDE = (-9, -15, 0)
"""Exit codes of a process that was killed by the system, an operator, or its parent for its silence. 0 may be one."""
_START_SECONDS = 120.0
_STARTS = 4
"""Times that a process may die while it starts, before the run ends. The out-of-memory killer takes several at once."""
_PAUSE_S = 0.5
"""Before the second start, and twice as long before each further one: memory may be free again by then."""


class ChildProcess:
    """A module that runs as a process, from the first request on, and again whenever it ended. Not thread-safe."""

    def __init__(self, module: str, *arguments: str, shows_errors: bool = False) -> None:
        """`shows_errors` lets it write to this process's standard error."""
        self._arguments = ["-m", module, *arguments]
        self._errors = None if shows_errors else subprocess.DEVNULL
        self._process: subprocess.Popen[str] | None = None
        self.exit_code: int | None = None
        """That of the last process that ended; 0, without a meaning, where this process ignores SIGCHLD."""

    def exchange(self, request: Any, count: int, seconds: float) -> list[Any]:
        """The `count` replies to a request; fewer if the process died, or took longer than these wall seconds.

        It is closed then, and also if the caller is interrupted, so that no reply is left for the next request.
        """
        if self._process is None:
            self._start()
        return self._replies(json.dumps(request, default=str, skipkeys=True) + "\n", count, seconds)

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            _kill(process)
            with suppress(BrokenPipeError), process:  # it may have died with unread input
                pass
            self.exit_code = process.returncode

    def _replies(self, line: str, count: int, seconds: float) -> list[Any]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        replies: list[Any] = []
        timer = threading.Timer(seconds, _kill, [process])
        timer.daemon = True
        timer.start()
        try:
            process.stdin.write(line)
            process.stdin.flush()
            while len(replies) < count and (reply := process.stdout.readline()).endswith("\n"):
                replies.append(json.loads(reply))
        except BrokenPipeError:
            pass
        finally:
            timer.cancel()
            if len(replies) < count:
                self.close()
        return replies

    def _start(self) -> None:
        """Wait until a new process is ready. Raises InputError where each of `_STARTS` died, or none could be made."""
        why = ""
        for attempt in range(_STARTS):
            time.sleep(_PAUSE_S * 2 ** (attempt - 1) if attempt else 0.0)
            try:
                self._process = self._spawn()
                if self._replies("", 1, _START_SECONDS):
                    return
                why = f"exit code {self.exit_code}"
            except OSError as error:  # the system has no room for another process
                why = str(error)
            logger.warning("a process died while it started (%s)", why)
        command = " ".join([sys.executable, *self._arguments])
        raise InputError(
            f"a process of Cooper did not start, {_STARTS} times ({why}); make memory free or lower rule.workers "
            f"where the system has killed it (exit code -9); else run `{command}` to see why"
        )

    def _spawn(self) -> subprocess.Popen[str]:
        # -P keeps the user's working directory off the module path. PYTHONPATH makes the package importable anyway.
        # Without a fixed hash seed, sympy's sets have another order in every process.
        return subprocess.Popen(
            [sys.executable, "-P", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env=with_own_paths({**os.environ, "PYTHONHASHSEED": "0"}),
            start_new_session=True,  # Ctrl-C is the main process's to handle
        )


class SharedProcess(ChildProcess):
    """A process that all threads share, each under its `lock`. It ends with the program, and a fork has another one."""

    _all: ClassVar["weakref.WeakSet[SharedProcess]"] = weakref.WeakSet()

    def __init__(self, module: str, *arguments: str) -> None:
        super().__init__(module, *arguments)
        self.lock = threading.Lock()
        self._of_parents: list[subprocess.Popen[str] | None] = []
        self._all.add(self)
        atexit.register(self.close)

    @classmethod
    def forget_all(cls) -> None:
        """After a fork: the processes are the parent's. Handles are kept, for to close one would write to its pipe."""
        for shared in cls._all:
            shared._of_parents.append(shared._process)
            shared._process, shared.lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SharedProcess.forget_all)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill the process with its forks. They are a session of their own."""
    if not hasattr(os, "killpg"):
        process.kill()
    elif process.returncode is None:  # not waited for, so that the number is still its own
        with suppress(ProcessLookupError):  # dead, where this process ignores SIGCHLD
            os.killpg(process.pid, signal.SIGKILL)


# What follows runs in the process itself.


def reply_to_parent(message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def private_streams() -> tuple[IO[str], IO[str]]:
    """The streams of requests and of replies, out of reach of what else this process runs: that finds standard input
    empty, and prints to standard error."""
    requests, replies = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    os.close(nowhere)
    sys.stdout.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue] - it is a TextIOWrapper
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: os.close(replies))  # a fork must not keep the parent waiting
    return os.fdopen(requests, encoding="utf-8"), os.fdopen(replies, "w", encoding="utf-8")


def limit_cpu(seconds: float) -> None:
    """Let the system kill this process after so many seconds of CPU time from now; 0 for never. Windows does not."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)


def limit(name: str, value: int) -> None:
    """Lower a soft limit as far as the system allows: Windows has none, and macOS refuses RLIMIT_AS."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415

        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
