"""Worker processes that answer questions of mathematics: the main process's handle on one, and the process itself.

`python -m cooper_verify.rules.processes.worker MEMORY_MIB CPU_SECONDS` reads questions as JSON lines and passes them to
a fork, which answers one after the other: a parser that has read a few formulas reads the next ones several times as
fast.
Every question starts with the same random state and with empty caches of sympy. The parser's tables and the fork's
memory do carry over from earlier questions, and they must not decide a verdict. So a question on which a used fork is
slow or dies is asked again of a new fork, with the whole time; so is one nested so deeply that the stack could matter.
A fork is killed by a timer of its own CPU time, which sympy's C loops cannot ignore and which does not see what else
the machine does. Where there is no fork (Windows), the process answers itself, and only the parent's wall time limits
it.
"""

import gc
import json
import logging
import os
import random
import re
import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

from cooper_base.data.verdict import Verdict
from cooper_verify.rules.answer.extraction import extract_answer, reference_text
from cooper_verify.rules.processes.child import TRIES, ChildProcess, limit, reply_to_parent

logger = logging.getLogger(__name__)


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
    fault: str | None = None
    """The traceback, if the comparison raised: the verdict is `unparsed` then."""


class WorkerProcess(ChildProcess):
    """One worker process. It starts with the first question and again whenever it was lost. Not thread-safe.

    After `wall_s` seconds of wall time a question, which may take `timeout_s` of CPU time, counts as lost.
    """

    def __init__(self, timeout_s: float, memory_mib: int, wall_s: float) -> None:
        super().__init__("cooper_verify.rules.processes.worker", str(memory_mib), str(timeout_s))
        self._wall_s = wall_s

    def ask(self, answer: str, completion: str, expressions: bool = False, asked: str = "") -> Checked:
        """The verdict. It is asked for again if the process is lost: killed from outside, or silent for `wall_s`."""
        question = {"answer": answer, "completion": completion, "expressions": expressions, "question": asked}
        for stalls in range(TRIES):
            replies = self.exchange(question, 1, self._wall_s)
            if replies and replies[0]["outcome"] != "lost":
                if replies[0]["verdict"] not in get_args(Verdict):
                    raise RuntimeError(f"worker process replied {replies[0]!r}")
                return Checked(stalls=stalls, **replies[0])
            self.close()
            logger.warning("a worker process was lost: killed from outside, or silent for %g s", self._wall_s)
        return Checked("timeout", "stalled", 0.0, TRIES)


# What follows runs in the process itself.
_MIB = 2**20
_STATUS = Path("/proc/self/status")
_QUESTIONS_A_FORK = 4000
"""So that what a fork has learned does not grow for ever: 10 MiB in 1000 questions."""
_SHARE_OF_TIME = 0.2
"""Of the CPU time that an answer may take, what it may take in a fork with a past."""
_DEEP = 20
"""Levels of brackets, bars, or signs in a row, of an answer. The parser's stack overflows at over twice as many."""
_LEVELS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_SIGNS = re.compile(rf"(?:[-+^]\s*){{{_DEEP}}}")

_WARM_UP = [
    ("2x+2", r"\boxed{2(x+1)}"),
    (r"\frac{\sqrt{3}}{2}", r"\boxed{0.5 \cdot \sqrt{3}}"),
    ("[1, 2)", r"The answer is $1 \le x < 2$."),
    (r"(1, \pi)", r"\boxed{\left(1, 3\right)}"),
    (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\boxed{\begin{bmatrix} 1 \\ 3 \end{bmatrix}}"),
    (r"\sin^2 x + \log_2 x", r"\boxed{1 - \cos^2 x}"),
    ("x = 3", r"\boxed{x^2 = 9}"),
    (r"\{1, 2\}", r"\boxed{1, 2}"),
    ("9", r"So the answer is $4 + 5 = 9$ cm."),
    ("12", r"It is 12\% or $\binom{5}{2}$ so 13 km"),
]
"""Questions whose verdicts nobody reads. They fill the caches that every later question starts from."""


def main(memory_mib: int, cpu_seconds: float) -> None:
    """Serve questions until standard input ends."""
    from cooper_verify.rules.verdicts.symbolic import maths_verdict  # noqa: PLC0415 - the main process needs none of this

    logging.disable(logging.CRITICAL)
    if hasattr(signal, "SIGCHLD"):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, as a parent may hand down, forks tell no exit status
    limit("RLIMIT_AS", memory_mib * _MIB)
    limit("RLIMIT_CORE", 0)
    for answer, completion in _WARM_UP:
        maths_verdict(answer, completion)
    gc.collect()
    gc.freeze()  # a collection in a fork would copy all of this
    gc.set_threshold(20_000, 50, 100)  # a parser leaves so little garbage that to look for it often is a loss
    reply_to_parent({"ready": True})
    fork: _Fork | None = None
    for line in sys.stdin:
        question = json.loads(line)
        if not hasattr(os, "fork"):
            reply_to_parent(_answered(question))
            continue
        if _is_deep(**question):
            alone = _Fork(memory_mib)  # the one with a past goes on with what it has learned
            reply_to_parent(reply := alone.ask(question, cpu_seconds))
            if reply["outcome"] == "answered":
                alone.close()
            continue
        spent = 0.0
        if fork is not None and fork.answered < _QUESTIONS_A_FORK:
            reply = fork.ask(question, cpu_seconds * _SHARE_OF_TIME)
            if reply["outcome"] in ("answered", "lost"):
                reply_to_parent(reply)
                fork = fork if reply["outcome"] == "answered" else None
                continue
            spent = reply["cpu_s"]
        elif fork is not None:
            fork.close()
        fork = _Fork(memory_mib)
        reply = fork.ask(question, cpu_seconds)
        fork = fork if reply["outcome"] == "answered" else None
        reply_to_parent({**reply, "cpu_s": reply["cpu_s"] + spent})


def _is_deep(answer: str, completion: str, expressions: bool, question: str) -> bool:
    """Whether reading it may overflow the stack, where it matters how much of a formula the parser knows already."""
    try:
        texts = (reference_text(answer), *extract_answer(completion, factorials="!" in answer).texts)
    except Exception:  # noqa: BLE001 - the fork that is asked raises it too, and says so
        return True
    return any(
        text.count("|") > _DEEP
        or _SIGNS.search(text)
        or max(accumulate(_LEVELS.get(letter, 0) for letter in text), default=0) > _DEEP
        for text in texts
    )


class _Fork:
    """A fork of this process that answers questions."""

    def __init__(self, memory_mib: int) -> None:
        asked, to_fork = os.pipe()
        from_fork, told = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(to_fork)
            _answer_and_exit(asked, told, memory_mib)
        os.close(asked)
        os.close(told)
        self._questions, self._replies = os.fdopen(to_fork, "w"), os.fdopen(from_fork)
        self._cpu_s = 0.0
        self.answered = 0

    def ask(self, question: dict[str, Any], cpu_seconds: float) -> dict[str, Any]:
        """The reply; see `Checked`. It is the last one unless its outcome is `answered`: the fork is gone. `outcome` is
        `lost` if something outside killed it."""
        with suppress(BrokenPipeError):
            self._questions.write(json.dumps([cpu_seconds, question]) + "\n")
            self._questions.flush()
        if (line := self._replies.readline()).endswith("\n"):
            reply = json.loads(line)
            self._cpu_s += reply["cpu_s"]
            self.answered += 1
            return reply
        status, usage = self.close()
        cpu_s = max(usage.ru_utime + usage.ru_stime - self._cpu_s, 0.0)
        ends = {-signal.SIGKILL: "lost", -signal.SIGTERM: "lost", -signal.SIGPROF: "killed"}
        return {"verdict": "timeout", "outcome": ends.get(os.waitstatus_to_exitcode(status), "crashed"), "cpu_s": cpu_s}

    def close(self) -> tuple[int, Any]:
        """Let the fork end. Returns its status and what it used."""
        with suppress(BrokenPipeError):
            self._questions.close()
        self._replies.close()
        return os.wait4(self._pid, 0)[1:]


def _answer_and_exit(asked: int, told: int, memory_mib: int) -> NoReturn:
    """Answer until `asked` ends. Exits without a reply if memory ran short."""
    code = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)  # if the process dies, its parent must not wait for this fork
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        with os.fdopen(asked) as questions:
            for line in questions:
                cpu_seconds, question = json.loads(line)
                signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
                reply = _answered(question)
                signal.setitimer(signal.ITIMER_PROF, 0)
                if _near_memory_limit(memory_mib):  # Math-Verify swallows MemoryError and calls the answer wrong
                    break
                os.write(told, (json.dumps(reply) + "\n").encode())
            else:
                code = 0
    finally:
        os._exit(code)


def _answered(question: dict[str, Any]) -> dict[str, Any]:
    import sympy.core.cache  # noqa: PLC0415
    import sympy.core.random  # noqa: PLC0415

    from cooper_verify.rules.verdicts.symbolic import maths_verdict  # noqa: PLC0415

    start = time.process_time()
    sympy.core.cache.clear_cache()
    random.seed(0)
    sympy.core.random.seed(0)  # sympy tests some properties at random points and in random order
    fault = None
    try:
        verdict = maths_verdict(**question)
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - a fault, which the main process notes
        verdict, fault = "unparsed", traceback.format_exc()
    return {"verdict": verdict, "outcome": "answered", "cpu_s": time.process_time() - start, "fault": fault}


def _near_memory_limit(memory_mib: int) -> bool:
    """Whether this fork's address space ever exceeded half its limit. The next growth step often doubles it."""
    if not _STATUS.exists():
        return False
    peak_kib = next(int(line.split()[1]) for line in _STATUS.read_text().splitlines() if line.startswith("VmPeak"))
    return peak_kib * 1024 > memory_mib * _MIB / 2


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
