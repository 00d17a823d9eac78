"""The progress of a run as log lines, for output that is not a terminal and for `fit` in Python."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta

EVERY_S = 10.0

TRAINING_METRICS = (
    ("reward/mean", "reward"),
    ("rule/accuracy", "rule"),
    ("gold/accuracy", "gold"),
    ("test/rule_avg", "test"),
    ("test/gold_avg", "test gold"),
    ("reward_model/pair_accuracy_before", "pairs"),
    ("rollout/cut_off_rate", "cut off"),
    ("time/step", "s"),
)
"""The metrics of a training step shown beside its number, each with a short name."""


class ProgressLines:
    """Lines such as `run 12/180  reward 0.53  rule 0.41  left 0:09:20`.

    The first and the last step get a line each. The steps between get at most one line in `every_s` seconds. The time
    left is estimated from the pace since the first line. `clock` returns seconds.
    """

    def __init__(
        self,
        label: str,
        metrics: Sequence[tuple[str, str]] = (),
        every_s: float = EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label = label
        self._metrics = metrics
        self._every_s = every_s
        self._clock = clock
        self._start: tuple[int, float] | None = None
        self._last_line = 0.0

    def line(self, completed: int, total: int, metrics: Mapping[str, float] | None = None) -> str | None:
        """The line for a step, or None if it is too early for another line."""
        now = self._clock()
        if self._start is None:
            self._start = (completed, now)
        elif completed != total and now - self._last_line < self._every_s:
            return None
        self._last_line = now
        parts = [f"{self._label} {completed}/{total}", *shown(self._metrics, metrics or {})]
        left = self._left(completed, total, now)
        return "  ".join([*parts, f"left {left}"] if left is not None else parts)

    def _left(self, completed: int, total: int, now: float) -> timedelta | None:
        first, since = self._start or (completed, now)
        done = completed - first
        return None if done <= 0 else timedelta(seconds=round((total - completed) * (now - since) / done))


def shown(chosen: Sequence[tuple[str, str]], metrics: Mapping[str, float]) -> list[str]:
    """The chosen metrics that have a value, each as "short name value"."""
    return [f"{name} {metrics[key]:.3g}" for key, name in chosen if key in metrics]


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Show this package's log from level INFO on, but only in a program that has not set up logging itself."""
    ours = logging.getLogger("cooper_rl")
    if ours.hasHandlers() or ours.level != logging.NOTSET:
        yield
        return
    handler = logging.StreamHandler()
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)
    try:
        yield
    finally:
        ours.removeHandler(handler)
        ours.setLevel(logging.NOTSET)
