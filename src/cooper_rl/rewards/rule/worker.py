"""One verifier process: reads requests and writes verdicts, both as JSON lines.

    python -m cooper_rl.rewards.rule.worker MEMORY_MIB CPU_SECONDS

A request is `{"answer": ..., "completion": ..., "expressions": ...}`, a reply `{"verdict": ...}`. The first line of
output is `{"ready": true}`. The parent kills the process when it takes too long. The limits here cover what the parent
cannot see: memory use, and a stalled process whose parent has died.
"""

import json
import logging
import sys
from pathlib import Path

from cooper_rl.rewards.rule.maths import maths_verdict

try:
    import resource
except ImportError:  # Windows has no resource limits; the parent's time-out still holds
    resource = None

_MIB = 2**20
_STATUS = Path("/proc/self/status")


def main(memory_mib: int, cpu_seconds: int) -> None:
    """Serve requests until standard input ends. When memory runs short, exit; the parent starts a fresh process."""
    logging.disable(logging.CRITICAL)
    if resource is not None:
        _limit(resource.RLIMIT_AS, memory_mib * _MIB)
        _limit(resource.RLIMIT_CORE, 0)
    _reply({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        if resource is not None:
            usage = resource.getrusage(resource.RUSAGE_SELF)
            _limit(resource.RLIMIT_CPU, int(usage.ru_utime + usage.ru_stime) + cpu_seconds)
        verdict = maths_verdict(**request)
        exhausted = _near_memory_limit(memory_mib)
        # Math-Verify swallows MemoryError and calls the answer wrong. `timeout` says that it could not be checked.
        _reply({"verdict": "timeout" if exhausted else verdict})
        if exhausted:
            return


def _near_memory_limit(memory_mib: int) -> bool:
    """Whether the address space ever exceeded half its limit. The next growth step often doubles it."""
    if not _STATUS.exists():  # ru_maxrss will not do: it is inherited from a parent that holds a model
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


def _reply(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
