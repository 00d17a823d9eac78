"""A clock for the parts of a step."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Wall seconds of the parts of a step, as `time/<part>` metrics."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        """Time the block as `part`."""
        start = time.perf_counter()
        yield
        self._seconds[f"time/{part}"] = time.perf_counter() - start

    def metrics(self) -> dict[str, float]:
        """The parts measured so far, and `time/step`: the time since the clock was created."""
        return self._seconds | {"time/step": time.perf_counter() - self._start}

    def parts(self) -> dict[str, float]:
        """The parts measured so far."""
        return dict(self._seconds)
