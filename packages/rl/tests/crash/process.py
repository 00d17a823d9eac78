"""Runs a command, such as `cooper train`, in a process that can be killed and that writes down where it was."""

import faulthandler
import os
import signal
import sys
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from cooper_base.cli.main import app
from forks import FORKS

CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"}


def start(config: Path, directory: Path, log: Path, die_at: int = 0) -> BaseProcess:
    """Start the run of `config`, or resume it if its folder `directory` exists. Returns when it is about to begin.

    The process writes its output to `log`, and on SIGUSR1 its stack to `log.stack`. It kills itself before its
    `die_at`-th change to the folder. With 0 it lives, and writes the number of its changes to `log.changes`.
    """
    return start_command(["train", str(config), *(["--resume"] if directory.exists() else [])], directory, log, die_at)


def start_command(words: Sequence[str], directory: Path, log: Path, die_at: int = 0) -> BaseProcess:
    """Start `cooper` with these words, as `start` does. Changes beside `directory` under its hidden names count too."""
    log.unlink(missing_ok=True)
    arguments = ["cooper", *words]
    process = FORKS.Process(target=_run, args=(arguments, str(directory), str(log), die_at))
    process.start()
    while process.is_alive() and not log.exists():
        time.sleep(0.001)
    return process


def kill(process: BaseProcess, log: Path) -> None:
    """Send SIGKILL after the process has written down its stack."""
    stack = log.with_suffix(".stack")
    assert process.pid is not None
    try:
        os.kill(process.pid, signal.SIGUSR1)
        while process.is_alive() and not stack.read_bytes().endswith(b"in <module>\n"):
            time.sleep(0.0002)
        os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # the process has just ended
        pass
    process.join()


def _run(arguments: list[str], directory: str, log: str, die_at: int) -> None:
    stack = Path(log).with_suffix(".stack").open("w+", encoding="utf-8")
    faulthandler.register(signal.SIGUSR1, file=stack, all_threads=False)
    changes = 0

    def count(event: str, details: tuple[Any, ...]) -> None:
        nonlocal changes
        if not _changes(event, details, directory):
            return
        changes += 1
        if changes == die_at:
            faulthandler.dump_traceback(stack, all_threads=False)
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = arguments
    try:
        app()
    finally:
        Path(log).with_suffix(".changes").write_text(str(changes))


def _changes(event: str, details: tuple[Any, ...], directory: str) -> bool:
    """Whether an audit event changes the folder, or a hidden one of its name, or opens a file there for writing."""
    if event == "open":
        writes = isinstance(details[2], int) and details[2] & (os.O_WRONLY | os.O_RDWR)
    else:
        writes = event in CHANGES
    folder, name = os.path.split(directory)
    return bool(writes) and f"{details[0]}/".startswith((f"{directory}/", f"{folder}/.{name}."))
