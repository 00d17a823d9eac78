"""How far work is, in words: lines for a log, with the pace so far and the time left."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from cooper_base.progress import Progress

PARTS = {
    "sample": "sampling",
    "verify": "checking answers",
    "reward": "scoring",
    "score_steps": "scoring steps",
    "update_policy": "updating the policy",
    "wait_for_assistant": "gathering pairs and the assistant's replies",
    "update_reward_model": "updating the reward model",
    "probe": "measuring the reward model",
    "evaluate": "evaluating",
    "held_out_monitor": "measuring the reward model",
}
"""The words for those parts of a step whose names are not words."""


def duration(seconds: float) -> str:
    """Seconds as days, hours, minutes and seconds, at least 0 and at most what a calendar can hold."""
    return str(timedelta(seconds=round(min(max(0.0, seconds), timedelta.max.total_seconds() - 1))))


@dataclass
class ProgressLines:
    """Lines such as `run 12/180  reward 0.53  rule 0.41  left 0:09:20`. The pace so far gives the time left.

    The first and the last step always get a line, the others at most one every `every_s` seconds.
    """

    label: str
    metrics: Sequence[tuple[str, str]] = ()
    every_s: float = 10.0
    clock: Callable[[], float] = time.monotonic

    _first: tuple[int, float] | None = None
    _last_line: float | None = None
    _pace: "Pace | None" = None

    def line(self, completed: int, total: int, metrics: Mapping[str, float] | None = None) -> str | None:
        """The line for a step, or None if it is too early for another line."""
        now = self.clock()
        if self._first is None:
            self._first = (completed, now)
        elif completed != total and now - (self._last_line or 0.0) < self.every_s:
            return None
        self._last_line = now
        done = f"{completed}/{total}" if total else f"{completed}"  # nobody knows how much there is
        parts = [f"{self.label} {done}", *shown(self.metrics, metrics or {})]
        first, since = self._first
        if completed > first and total:
            left_s = (total - completed) * (now - since) / (completed - first)
            parts.append(f"left {duration(left_s)}")
        return "  ".join(parts)

    def line_within(self, at: Progress) -> str | None:
        """The line for work inside a step, such as `run  step 2  sampling  …`, where no line came for `every_s`."""
        self._pace, now = self._pace or Pace(self.clock), self.clock()
        text = self._pace.describe(at)
        if self._last_line is None:
            self._last_line = now
        if now - self._last_line < self.every_s:
            return None
        self._last_line = now
        return f"{self.label}  {text}"


@dataclass
class Pace:
    """Describes progress in words, with the rate and the time left, measured since the current work began."""

    clock: Callable[[], float] = time.monotonic

    _work: tuple[Any, ...] = ()
    _since: tuple[int, float] = (0, 0.0)
    _last: int = 0

    def describe(self, at: Progress) -> str:
        """`step 2  sampling  5,120 of at most 131,072 tokens  12/256 completions  48/s  at most 0:43:44 left`."""
        now, work = self.clock(), (at.parts, at.unit, "" if at.ceiling else at.note)
        if work != self._work or at.done < self._last:
            self._work, self._since = work, (at.done, now)
        self._last = at.done
        words = [PARTS.get(name, name) for name in at.parts]
        most = "at most " if at.ceiling else ""
        if at.total:
            words.append(f"{at.done:,} of {most}{at.total:,} {at.unit}")
        words.append(at.note)
        first, since = self._since
        if at.done > first and now > since:
            rate = (at.done - first) / (now - since)
            words += [
                f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s",
                f"{most}{duration((at.total - at.done) / rate)} left",
            ]
        return "  ".join(filter(None, words))


def shown(chosen: Sequence[tuple[str, str]], metrics: Mapping[str, float]) -> list[str]:
    """The chosen metrics that have a value, each as "short name value"."""
    return [f"{name} {metrics[key]:.3g}" for key, name in chosen if key in metrics]
