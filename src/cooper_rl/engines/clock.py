"""A clock for the parts of a step, which also notes the memory that each of them takes, in main memory and on GPUs."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cooper_rl.engines.progress import part as under_way

MEASURED = ("time/", "memory/", "gpu_memory/", "rule/lost")
"""How the names of metrics begin that tell of the machine: the only ones in which equal runs differ."""
VERIFY_S = "verify_s"  # the field of a recorded completion that tells of the machine: its verdict's CPU seconds
_MIB = 2**20
_STATUS = Path("/proc/self/status")


class Clock:
    """Wall seconds of the parts of a step as `time/<part>`, and in MiB `memory/<part>`, held at a part's end,
    `memory/peak`, and `gpu_memory/<part>`, PyTorch's peak on one GPU, which overlapping parts reset for each other.
    """

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._measured: dict[str, float] = {}

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        _gpus("reset_peak_memory_stats")  # PyTorch has one peak for the whole process
        start = time.perf_counter()
        with under_way(part):
            yield
        self._note("time", part, time.perf_counter() - start)
        self._note("memory", part, _status_mib("VmRSS:"))
        self._note("gpu_memory", part, max((most / _MIB for most in _gpus("max_memory_allocated")), default=None))

    def metrics(self) -> dict[str, float]:
        """Those of the parts, `memory/peak`, and `time/step`: the time since the clock was created."""
        self._note("time", "step", time.perf_counter() - self._start)
        self._note("memory", "peak", peak_mib())
        return self.parts()

    def parts(self) -> dict[str, float]:
        return dict(self._measured)

    def _note(self, kind: str, name: str, value: float | None) -> None:
        if value is not None:
            self._measured[f"{kind}/{name}"] = value


def peak_mib() -> float | None:
    """The most main memory that the process ever held, in MiB. None where the system does not tell."""
    if (found := _status_mib("VmHWM:")) is not None:  # on Linux ru_maxrss may be that of the parent process
        return found
    if sys.platform != "darwin":
        return None
    import resource  # noqa: PLC0415 - not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB


def _gpus(ask: str) -> list[Any]:
    """What this function of `torch.cuda` says for each GPU; PyTorch is not loaded for it."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return []
    return [getattr(torch.cuda, ask)(device) for device in range(torch.cuda.device_count())]


def _status_mib(field: str) -> float | None:
    """A field of the system's status of this process, in MiB. None where the system does not tell, as on macOS."""
    lines = _STATUS.read_text(encoding="utf-8").splitlines() if _STATUS.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field)), None)
