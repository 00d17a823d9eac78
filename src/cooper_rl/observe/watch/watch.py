"""Applies the watch rules to the metrics of one step after another."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cooper_rl.engines.base import Metrics
from cooper_rl.observe.watch.hacking_alarm import HackingAlarm
from cooper_rl.observe.watch.rules import HACKING, WatchRule, active_rules


@dataclass(frozen=True)
class Firing:
    """A rule that fires: its bound was crossed `patience` times in a row."""

    rule: WatchRule
    step: int
    since: int
    """The first step of the row of faults."""
    values: list[float]
    """The last values of that row, at most `patience` of them."""
    signs: list[str]
    """The signs that the reward-hacking alarm saw; empty for any other rule."""

    @property
    def message(self) -> str:
        """A sentence that says what happened, since when, and what to do."""
        bounds = [f"{name} {bound:g}" for name in ("above", "below") if (bound := getattr(self.rule, name)) is not None]
        bound = " or ".join(bounds) or "not finite"
        values = ", ".join(f"{value:.4g}" for value in self.values)
        said = "; ".join([*self.signs, self.rule.advice] if self.rule.advice else self.signs)
        return f"{self.rule.metric} {bound} since step {self.since}: {values}" + (f" ({said})" if said else "")

    def event(self) -> dict[str, Any]:
        """JSON values for `events.jsonl`."""
        return {
            "step": self.step,
            "metric": self.rule.metric,
            "action": self.rule.action,
            "since": self.since,
            "values": self.values,
            "message": self.message,
        }


class Watch:
    """Applies the rules to the metrics of one step after another. Its state depends only on the metrics it has seen."""

    def __init__(self, rules: Sequence[WatchRule], seen: Iterable[Mapping[str, float]] = ()):
        """`seen` are the rows of `metrics.jsonl` from before a resumed run."""
        self._rows = [_Faults(rule) for rule in active_rules(rules)]
        self._alarm = HackingAlarm()
        self._unseen = {rule.metric for rule in rules}
        for row in seen:
            self.observe(int(row["step"]), row)

    def observe(self, step: int, metrics: Mapping[str, float]) -> tuple[list[Firing], Metrics]:
        """The rules that fire at this step, and two metrics.

        `watch/reward_hacking` counts the signs of reward hacking. `watch/faults` counts the rules that have been broken
        for their patience or longer.
        """
        signs = self._alarm.observe(metrics)
        found: Metrics = {HACKING: float(len(signs))}
        values = {**metrics, **found}
        self._unseen -= values.keys()
        fired = [row for row in self._rows if row.rule.metric in values and row.add(step, values[row.rule.metric])]
        found["watch/faults"] = float(sum(row.lasts for row in self._rows))
        return [row.fire(step, signs) for row in fired], found

    @property
    def in_doubt(self) -> bool:
        """Whether a rule that can roll back is being broken, so that a checkpoint might hold the fault."""
        return any(row.values for row in self._rows if row.rule.action == "rollback")

    @property
    def lasting(self) -> list[tuple[WatchRule, int]]:
        """The rules that have been broken for their patience or longer, each with the first step of its faults."""
        return [(row.rule, row.since) for row in self._rows if row.lasts]

    @property
    def unseen(self) -> list[str]:
        """Metrics of the user's rules that no step has recorded."""
        return sorted(self._unseen)


class _Faults:
    """The current row of faults of one rule."""

    def __init__(self, rule: WatchRule) -> None:
        self.rule = rule
        self.since = 0
        self.values: list[float] = []

    def add(self, step: int, value: float) -> bool:
        """Take in a value. Returns True if it uses up the patience."""
        looks = self.rule.start <= step and (self.rule.until is None or step <= self.rule.until)
        if not looks or not self.rule.broken_by(value):
            self.values = []
            return False
        self.since = self.since if self.values else step
        self.values.append(value)
        return len(self.values) == self.rule.patience

    @property
    def lasts(self) -> bool:
        return len(self.values) >= self.rule.patience

    def fire(self, step: int, signs: list[str]) -> Firing:
        """The firing. After `stop` the count starts over, so that a resumed run stops again if the fault persists."""
        told = signs if self.rule.metric == HACKING else []
        firing = Firing(self.rule, step, self.since, self.values[-self.rule.patience :], told)
        if self.rule.action == "stop":
            self.values = []
        return firing
