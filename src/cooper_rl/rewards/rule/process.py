"""The main process's handle on a verifier process: it asks, and replaces a process that is lost."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from cooper_rl.rewards.rule.verdict import Verdict

logger = logging.getLogger(__name__)

_START_SECONDS = 120.0
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
_TRIES = 2


@dataclass(frozen=True)
class Checked:
    """A verdict with what it cost."""

    verdict: Verdict
    outcome: Literal["answered", "killed", "crashed", "stalled"]
    """`killed` (out of CPU time) and `crashed` (out of memory or stack) are properties of the question and mean
    `timeout`. `stalled` means `timeout` too, but says nothing of the question: its process was lost every time."""
    cpu_s: float
    """CPU seconds of the question alone."""
    stalls: int
    """How often the process was lost before it replied."""


class RuleProcess:
    """One verifier process. It starts with the first question and again whenever it was lost.

    Only one thread at a time may use it. It is a plain subprocess that speaks JSON lines, so it needs no fork of a
    process that holds a model, no pickle, and no `__main__` guard in the user's script. `wall_s` is the wall time after
    which a question is taken for lost. It is far above `timeout_s`, the CPU time that a question may take.
    """

    def __init__(self, timeout_s: float, memory_mib: int, wall_s: float) -> None:
        self._timeout_s = timeout_s
        self._memory_mib = memory_mib
        self._wall_s = wall_s
        self._process: subprocess.Popen[str] | None = None

    def ask(self, answer: str, completion: str, expressions: bool = False) -> Checked:
        """The verdict. A question whose process is lost (killed from outside, or silent for `wall_s`) is asked again,
        once.
        """
        question = {"answer": answer, "completion": completion, "expressions": expressions}
        for stalls in range(_TRIES):
            process = self._process or self._start()
            reply = self._exchange(process, question, self._wall_s)
            if reply is not None and reply["outcome"] != "lost":
                if reply["verdict"] not in get_args(Verdict):
                    raise RuntimeError(f"verifier process replied {reply!r}")
                return Checked(stalls=stalls, **reply)
            self.close()
            logger.warning("a verifier process was lost: killed from outside, or silent for %g s", self._wall_s)
        return Checked("timeout", "stalled", 0.0, _TRIES)

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        _kill(process)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    logger.debug("verifier process %d had died with unread input", process.pid)

    def _start(self) -> subprocess.Popen[str]:
        # -P keeps the user's working directory off the module path. PYTHONPATH makes the package importable anyway.
        # Without a fixed hash seed, sympy's sets have another order in every process.
        paths = [_PACKAGE_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
        arguments = ["-m", "cooper_rl.rewards.rule.worker", str(self._memory_mib), str(self._timeout_s)]
        process = subprocess.Popen(
            [sys.executable, "-P", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"},
            start_new_session=True,  # Ctrl-C is the main process's to handle
        )
        self._process = process
        if self._exchange(process, None, _START_SECONDS) is None:
            self.close()
            raise RuntimeError(
                f"the rule verifier's process did not start; to see why, run `{' '.join([sys.executable, *arguments])}`"
            )
        return process

    @staticmethod
    def _exchange(
        process: subprocess.Popen[str], request: dict[str, str | bool] | None, seconds: float
    ) -> dict[str, Any] | None:
        """One reply; None if the process died, or was killed because it took longer than these wall seconds."""
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(seconds, _kill, [process])
        timer.daemon = True
        timer.start()
        try:
            if request is not None:
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        return json.loads(line) if line.endswith("\n") else None


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill the process with its fork. They are a session of their own."""
    if not hasattr(os, "killpg"):
        process.kill()
    elif process.returncode is None:  # not waited for, so that the number is still its own
        os.killpg(process.pid, signal.SIGKILL)
