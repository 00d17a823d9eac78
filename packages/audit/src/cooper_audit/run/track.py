"""A metric as the alarm reads it, step after step."""

from collections import deque
from math import inf, sqrt
from typing import Any

from cooper_audit.run.change_points import t_quantile

MOST = 40
"""The widest window."""


class Track:
    """The last values of a metric, and how far chance alone would move a mean of them."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=MOST)
        self._means: dict[int, float] = {}
        self._squares = 0.0
        self.count = 0

    def add(self, value: float) -> None:
        self._means.clear()
        if self._values:
            self._squares += (value - self._values[-1]) ** 2
        self._values.append(value)
        self.count += 1

    def state(self) -> list[Any]:
        return [list(self._values), self._squares, self.count]

    def restore(self, state: list[Any]) -> None:
        values, self._squares, self.count = state
        self._values, self._means = deque(values, maxlen=MOST), {}

    def mean(self, width: int) -> float:
        """Of the last values, at most `width`."""
        if width not in self._means:  # several signs ask
            values = list(self._values)[-width:]
            self._means[width] = sum(values) / len(values)
        return self._means[width]

    def noise(self, width: int, error: float) -> float:
        """The largest difference of two means over `width` values that chance makes with a probability over `error`.

        The variance of a value is half of that of neighbouring values' differences, which a slow trend hardly affects.
        """
        differences = self.count - 1
        if not differences:
            return inf
        deviation = sqrt(self._squares / differences / min(width, self.count))
        return t_quantile(1 - error, max(1.0, 2 * differences / 3)) * deviation
