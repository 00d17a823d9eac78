"""One verifier process: reads questions and writes verdicts, both as JSON lines.

    python -m cooper_rl.rewards.rule.worker MEMORY_MIB CPU_SECONDS

A question is `{"answer": ..., "completion": ..., "expressions": ...}`, a reply
`{"verdict": ..., "outcome": ..., "cpu_s": ...}`. The first line of output is `{"ready": true}`.

The process itself answers nothing: it forks for each question. So a question meets the same memory, caches and random
state in every process, whatever was asked before. The fork is killed by a timer of its own CPU time, which sympy's C
loops cannot ignore and which does not see what else the machine does. Where there is no fork (Windows), the process
answers itself, and only the parent's wall time limits it.
"""

import gc
import json
import logging
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn, get_args

import sympy.core.random

from cooper_rl.rewards.rule.maths import maths_verdict
from cooper_rl.rewards.rule.verdict import Verdict

try:
    import resource
except ImportError:  # Windows has no resource limits
    resource = None

_MIB = 2**20
_STATUS = Path("/proc/self/status")
_VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_FIRST = 100
"""A fork that exits with this code plus i gives verdict number i. Failing programs use lower codes."""
_EXHAUSTED = 120

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
    logging.disable(logging.CRITICAL)
    if resource is not None:
        _limit(resource.RLIMIT_AS, memory_mib * _MIB)
        _limit(resource.RLIMIT_CORE, 0)
    for answer, completion in _WARM_UP:
        maths_verdict(answer, completion)
    random.seed(0)
    sympy.core.random.seed(0)  # sympy tests some properties at random points and in random order
    gc.collect()
    gc.freeze()  # a collection in a fork would copy all of this
    _reply({"ready": True})
    for line in sys.stdin:
        question = json.loads(line)
        if hasattr(os, "fork"):
            _reply(_asked_in_a_fork(question, memory_mib, cpu_seconds))
        else:
            start = time.process_time()
            verdict = maths_verdict(**question)
            _reply({"verdict": verdict, "outcome": "answered", "cpu_s": time.process_time() - start})


def _asked_in_a_fork(question: dict[str, Any], memory_mib: int, cpu_seconds: float) -> dict[str, Any]:
    """The reply to a question. `outcome` is `lost` if something outside killed the fork, so that there is no verdict.

    Any other end is a property of the question: out of CPU time (`killed`), out of memory or stack (`crashed`).
    """
    pid = os.fork()
    if pid == 0:
        _answer_and_exit(question, memory_mib, cpu_seconds)
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    verdict: Verdict = "timeout"
    if _FIRST <= code < _FIRST + len(_VERDICTS):
        verdict, outcome = _VERDICTS[code - _FIRST], "answered"
    elif code in (-signal.SIGKILL, -signal.SIGTERM):
        outcome = "lost"
    else:
        outcome = "killed" if code == -signal.SIGPROF else "crashed"
    return {"verdict": verdict, "outcome": outcome, "cpu_s": usage.ru_utime + usage.ru_stime}


def _answer_and_exit(question: dict[str, Any], memory_mib: int, cpu_seconds: float) -> NoReturn:
    code = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)  # if the process dies, its parent must not wait for this fork
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        code = _FIRST + _VERDICTS.index(maths_verdict(**question))
        if _near_memory_limit(memory_mib):  # Math-Verify swallows MemoryError and calls the answer wrong
            code = _EXHAUSTED
    finally:
        os._exit(code)


def _near_memory_limit(memory_mib: int) -> bool:
    """Whether this fork's address space ever exceeded half its limit. The next growth step often doubles it."""
    if not _STATUS.exists():
        return False
    peak_kib = next(int(line.split()[1]) for line in _STATUS.read_text().splitlines() if line.startswith("VmPeak"))
    return peak_kib * 1024 > memory_mib * _MIB / 2


def _limit(kind: int, value: int) -> None:
    """Lower a soft limit as far as the system allows."""
    hard = resource.getrlimit(kind)[1]  # pyright: ignore[reportOptionalMemberAccess]
    if hard != resource.RLIM_INFINITY:  # pyright: ignore[reportOptionalMemberAccess]
        value = min(value, hard)
    try:
        resource.setrlimit(kind, (value, hard))  # pyright: ignore[reportOptionalMemberAccess]
    except (ValueError, OSError):  # macOS refuses RLIMIT_AS
        logging.getLogger(__name__).debug("resource limit %s not set", kind)


def _reply(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
