"""A public reward in a process of its own, as a grader."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cooper_base.data.problem import Problem
from cooper_verify.grader import Asked, Grader, Opinion

HERE = Path(__file__).parent
AT_ONCE = 64
"""Answers that are sent before the first reply is read. Their replies fit into a pipe."""
SECONDS = 10.0
"""CPU seconds for one answer. Of wall time, `WALL` times as much."""
WALL = 5
START_S = 300.0
TICKS = os.sysconf("SC_CLK_TCK")


def command(*arguments: str) -> list[str]:
    return [getattr(sys, "_base_executable", sys.executable), "-S", str(HERE / "rewards.py"), *arguments]


def environment(folder: Path) -> dict[str, str]:
    """Of a process that calls a package's rewards. Strings have equal hashes in each, by which tasks are drawn."""
    own = {"PYTHONPATH": str(folder), "PATH": os.environ["PATH"], "HOME": str(folder)}
    return own | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}


def listed(folder: Path, *arguments: str) -> dict[str, Any]:
    """What `rewards.py` writes with these arguments."""
    run = subprocess.run(command(*arguments), env=environment(folder), capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


class Child:
    """A process that scores with one reward. It is started again after an answer that took too long."""

    def __init__(self, name: str, folder: Path, *arguments: str) -> None:
        self.command, self.environment = command(name, *arguments), environment(folder)
        self.errors = folder / "errors.txt"
        self.process: subprocess.Popen[bytes] | None = None
        self.read = b""

    def replies(self, answers: Sequence[Asked], seconds: float) -> list[dict[str, Any]]:
        """A reply for each answer."""
        replies: list[dict[str, Any]] = []
        while len(replies) < len(answers):
            if self.process is None:
                self._start(answers[0].problem)
            sent = answers[len(replies) : len(replies) + AT_ONCE]
            self._send(sent)
            for _ in sent:
                replies.append(self._reply(seconds))
                if self.process is None:  # what was sent after this answer is lost with the process
                    break
        return replies

    def _start(self, problem: Problem) -> None:
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        self.read = b""
        if "ready" not in self._reply(START_S):
            raise RuntimeError(f"does not start: {self.errors.read_text().strip().splitlines()[-1:]}")
        self._send([Asked(problem, problem.answer or "")])  # what is imported with the first answer is not its time
        self._reply(START_S)

    def _send(self, answers: Sequence[Asked]) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        for problem, completion in answers:
            asked = {"question": problem.question, "answer": problem.answer, "completion": completion}
            self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        self.process.stdin.flush()

    def _reply(self, seconds: float) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdout is not None
        place, cpu, start = self.process.stdout.fileno(), self._cpu(), time.monotonic()
        while b"\n" not in self.read:
            if select.select([place], [], [], 0.25)[0]:
                part = os.read(place, 1 << 16)
                self.read += part
                if not part:
                    self.close()
                    return {"score": None, "raised": "the process ended"}
            elif self._cpu() - cpu > seconds or time.monotonic() - start > WALL * seconds:
                self.close()
                return {"score": None, "hung": True}
        line, _, self.read = self.read.partition(b"\n")
        return json.loads(line)

    def _cpu(self) -> float:
        """CPU seconds of the process and of its children that have ended."""
        assert self.process is not None
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / TICKS

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class PublicReward(Grader):
    """A reward in a process of its own, on a scale that nobody knows. What raises or hangs has no score."""

    reads_reference = False
    gives_verdicts = False

    def __init__(self, name: str, child: Child) -> None:
        self.name, self.child = name, child
        self.raised: dict[str, int] = {}
        self.unscored: list[str] = []
        self.seconds = 0.0
        self.seconds_for_one = SECONDS
        self.last_hung = False

    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        start = time.monotonic()
        replies = self.child.replies(answers, self.seconds_for_one)
        self.seconds += time.monotonic() - start
        for (_, text), reply in zip(answers, replies, strict=True):
            if raised := reply.get("raised"):
                self.raised[raised] = self.raised.get(raised, 0) + 1
            if "hung" in reply and self.seconds_for_one == SECONDS:
                self.unscored.append(text[:200])
        self.last_hung = "hung" in replies[-1]
        return [Opinion("silent", reply["score"]) for reply in replies]
