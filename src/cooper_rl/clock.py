"""A clock for the parts of a step, which also notes the memory that each of them takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from cooper_rl.process_memory import forget_gpu_peak, gpu_peak_mib, peak_mib, resident_mib

MEASURED = ("time/", "memory/", "gpu_memory/", "rule/lost")
"""How the names of metrics begin that tell of the machine. Equal runs differ in these metrics and in no others."""
VERIFY_S = "verify_s"
"""The field of a recorded completion that tells of the machine: the CPU seconds that its verdict cost."""


class Clock:
    """Wall seconds of the parts of a step as `time/<part>`, and what memory they take, as far as the system tells.

    `memory/<part>` is the main memory in MiB that this process holds at the end of a part, `memory/peak` the most that
    it ever held. `gpu_memory/<part>` is the most in MiB that PyTorch had allocated on one GPU during a part. For that
    the clock resets PyTorch's peak statistics. Parts that overlap disturb each other's peaks.
    """

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._measured: dict[str, float] = {}

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        """Measure the block as `part`."""
        forget_gpu_peak()
        start = time.perf_counter()
        yield
        self._note("time", part, time.perf_counter() - start)
        self._note("memory", part, resident_mib())
        self._note("gpu_memory", part, gpu_peak_mib())

    def metrics(self) -> dict[str, float]:
        """The parts measured so far, `memory/peak`, and `time/step`: the time since the clock was created."""
        self._note("time", "step", time.perf_counter() - self._start)
        self._note("memory", "peak", peak_mib())
        return self.parts()

    def parts(self) -> dict[str, float]:
        """The parts measured so far."""
        return dict(self._measured)

    def _note(self, kind: str, name: str, value: float | None) -> None:
        if value is not None:
            self._measured[f"{kind}/{name}"] = value
