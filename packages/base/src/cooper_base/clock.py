"""A clock for the parts of a step, which also notes the memory that each of them takes, in main memory and on GPUs."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cooper_base.progress import part as under_way

MEASURED = ("time/", "memory/", "gpu_memory/", "rule/lost")
"""Beginnings of the names of metrics that measure the machine. Equal runs differ in no other metric."""
VERIFY_S = "verify_s"  # the field of a recorded completion that measures the machine: the CPU seconds of its verdict
_MIB = 2**20
_STATUS = Path("/proc/self/status")


class Clock:
    """Measures the parts of a step: wall seconds (`time/<part>`), main memory at the part's end in MiB
    (`memory/<part>`), the process's peak (`memory/peak`), and PyTorch's peak on one GPU (`gpu_memory/<part>`). Parts
    that overlap reset that last peak for each other.
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
        """The metrics of the parts, `memory/peak`, and `time/step`: the seconds since the clock was created."""
        self._note("time", "step", time.perf_counter() - self._start)
        self._note("memory", "peak", peak_mib())
        return self.parts()

    def parts(self) -> dict[str, float]:
        return dict(self._measured)

    def _note(self, kind: str, name: str, value: float | None) -> None:
        if value is not None:
            self._measured[f"{kind}/{name}"] = value


def peak_mib() -> float | None:
    """The most main memory that the process has held so far, in MiB. None if the system does not report it."""
    if (found := _status_mib("VmHWM:")) is not None:  # on Linux ru_maxrss may be that of the parent process
        return found
    if sys.platform != "darwin":
        return None
    import resource  # noqa: PLC0415 - not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB


def _gpus(ask: str) -> list[Any]:
    """The result of this function of `torch.cuda` for each GPU. PyTorch is not imported for it."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return []
    return [getattr(torch.cuda, ask)(device) for device in range(torch.cuda.device_count())]


def _status_mib(field: str) -> float | None:
    """A field of the system's status of this process, in MiB. None if the system has no such status, as on macOS."""
    lines = _STATUS.read_text(encoding="utf-8").splitlines() if _STATUS.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field)), None)
