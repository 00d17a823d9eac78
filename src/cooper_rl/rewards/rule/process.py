"""The main process's handle on a verifier process: it asks, keeps the time, kills and replaces."""

import json
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Literal, get_args

from cooper_rl.rewards.rule.verdict import Verdict

logger = logging.getLogger(__name__)

_START_SECONDS = 120.0
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])


class RuleProcess:
    """One verifier process. It starts with the first question and again after every crash or kill.

    Only one thread at a time may use it. It is a plain subprocess that speaks JSON lines, so it needs no fork of a
    process that holds a model, no pickle, and no `__main__` guard in the user's script.
    """

    def __init__(self, timeout_s: float, memory_mib: int) -> None:
        self._timeout_s = timeout_s
        self._memory_mib = memory_mib
        self._process: subprocess.Popen[str] | None = None

    def ask(
        self, answer: str, completion: str, expressions: bool = False
    ) -> tuple[Verdict, Literal["answered", "killed", "crashed"]]:
        """The verdict and the state of the process afterwards. `killed` and `crashed` both mean verdict `timeout`."""
        process = self._process or self._start()
        question = {"answer": answer, "completion": completion, "expressions": expressions}
        reply, killed = self._exchange(process, question, self._timeout_s)
        if reply is None:
            self.close()
            return "timeout", "killed" if killed else "crashed"
        verdict: Verdict = reply["verdict"]
        if verdict not in get_args(Verdict):
            raise RuntimeError(f"verifier process replied {reply!r}")
        if killed or verdict == "timeout":
            self.close()
        return verdict, "answered"

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    logger.debug("verifier process %d had died with unread input", process.pid)

    def _start(self) -> subprocess.Popen[str]:
        # -P keeps the user's working directory off the module path. PYTHONPATH makes the package importable anyway.
        paths = [_PACKAGE_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
        cpu_seconds = int(self._timeout_s) + 2
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cooper_rl.rewards.rule.worker", str(self._memory_mib), str(cpu_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,  # Ctrl-C is the main process's to handle
        )
        self._process = process
        ready, _ = self._exchange(process, None, _START_SECONDS)
        if ready is None:
            self.close()
            raise RuntimeError(
                "the rule verifier's process did not start; to see why, run "
                f"`{sys.executable} -m cooper_rl.rewards.rule.worker {self._memory_mib} {cpu_seconds}`"
            )
        return process

    @staticmethod
    def _exchange(
        process: subprocess.Popen[str], request: dict[str, str | bool] | None, seconds: float
    ) -> tuple[dict | None, bool]:
        """One reply (None if the process died instead), and whether the process was killed for taking too long."""
        assert process.stdin is not None
        assert process.stdout is not None
        expired = threading.Event()

        def kill() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(seconds, kill)
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
        return (json.loads(line) if line.endswith("\n") else None), expired.is_set()
