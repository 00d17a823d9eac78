"""Rules on a run's metrics: what is a fault, for how long, and what to do about it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from pydantic import Field

from cooper_rl.configuration import Config
from cooper_rl.learning.learner import Metrics
from cooper_rl.runs.hacking_alarm import HackingAlarm

HACKING = "watch/reward_hacking"
ROLLBACKS = 3
"""Rollbacks in one run; the next one stops it."""


class WatchRule(Config):
    """A bound on one metric. A value that is not finite crosses every bound."""

    metric: str
    """A name in `metrics.jsonl`. A rule of yours replaces the default rules on the same metric."""
    above: float | None = None
    """Values above this are a fault."""
    below: float | None = None
    """Values below this are a fault. With neither bound only values that are not finite are."""
    patience: int = Field(default=1, ge=1)
    """Faulty values in a row, as recorded, until the rule fires."""
    action: Literal["ignore", "warn", "stop", "rollback"] = "warn"
    """`warn` says so once per row of faults; `stop` also writes a checkpoint and ends the run; `rollback` goes back to
    the newest checkpoint from before the fault and on with other random numbers; `ignore` switches the rule off."""
    advice: str = ""
    """Shown when the rule fires."""

    def broken_by(self, value: float) -> bool:
        """Whether the value is a fault."""
        too_high = self.above is not None and value > self.above
        too_low = self.below is not None and value < self.below
        return not isfinite(value) or too_high or too_low


DEFAULT_RULES = (
    WatchRule(
        metric="rollout/non_finite_logits",
        above=0,
        action="rollback",
        advice="the policy has diverged and cannot be sampled; lower policy.learning_rate",
    ),
    WatchRule(
        metric="policy/grad_norm",
        patience=3,
        advice="the policy's updates are skipped; lower policy.learning_rate, or train from an earlier checkpoint",
    ),
    WatchRule(
        metric="policy/usable_groups",
        below=0.05,
        patience=5,
        advice="rewards hardly differ inside the groups, so the policy learns nothing; look at the rollouts: problems "
        "too easy, too hard, or a reward that is the same for everything",
    ),
    WatchRule(
        metric="rule/accuracy",
        below=0.001,
        patience=5,
        advice="the rule accepts no completion; check the prompt's answer format, rollout.max_tokens and the problems",
    ),
    WatchRule(
        metric="rollout/cut_off_rate",
        above=0.95,
        patience=5,
        advice="nearly every completion meets the length limit; raise rollout.max_tokens, or check that the policy "
        "ends its answers",
    ),
    WatchRule(
        metric="reward/non_finite",
        above=0,
        advice="groups with such rewards are left out of the update; the reward model has probably diverged",
    ),
    WatchRule(
        metric="reward_model/std",
        below=0.01,
        patience=5,
        advice="the reward model scores everything alike; the reward has collapsed",
    ),
    WatchRule(
        metric="reward_model/grad_norm",
        patience=3,
        advice="the reward model's updates are skipped; lower reward_model.learning_rate",
    ),
    WatchRule(
        metric="reward_model/loss",
        above=5,
        patience=3,
        advice="the reward model diverges; lower reward_model.learning_rate",
    ),
    WatchRule(
        metric="reward_model/pair_accuracy_after",
        below=0.5,
        patience=5,
        advice="the reward model ranks the pairs it has just learned worse than chance; lower "
        "reward_model.learning_rate, and look at the pairs",
    ),
    WatchRule(
        metric="pairs/steps_without",
        above=20,
        advice="no step makes a valid pair, so the reward model learns nothing new; look at pairs/ and assistant/ "
        "metrics",
    ),
    WatchRule(
        metric=HACKING,
        above=0,
        advice="the policy may have found completions that the reward model pays for and the rule rejects; look at the "
        "hack gallery in report.html",
    ),
)


def active_rules(rules: Sequence[WatchRule]) -> list[WatchRule]:
    """The defaults that `rules` does not replace, then `rules`; ignored ones left out."""
    replaced = {rule.metric for rule in rules}
    merged = [rule for rule in DEFAULT_RULES if rule.metric not in replaced] + list(rules)
    return [rule for rule in merged if rule.action != "ignore"]


@dataclass(frozen=True)
class Firing:
    """A rule whose bound was crossed for as long as its patience."""

    rule: WatchRule
    step: int
    since: int
    """The first step of the row of faults."""
    values: list[float]
    """Its last values, at most `patience` of them."""
    signs: list[str]
    """What the reward-hacking alarm saw; for the rule on it."""

    @property
    def message(self) -> str:
        """What happened, since when, and what to do."""
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
    """Applies the rules to one step's metrics after another. Its state is a function of the metrics it has seen."""

    def __init__(self, rules: Sequence[WatchRule], seen: Iterable[Mapping[str, float]] = ()):
        """`seen` are the rows of `metrics.jsonl` that a resumed run continues."""
        self._rows = [_Faults(rule) for rule in active_rules(rules)]
        self._alarm = HackingAlarm()
        self._unseen = {rule.metric for rule in rules}
        for row in seen:
            self.observe(int(row["step"]), row)

    def observe(self, step: int, metrics: Mapping[str, float]) -> tuple[list[Firing], Metrics]:
        """The rules that fire at this step, and metrics.

        `watch/reward_hacking` counts the signs of reward hacking, `watch/faults` the rules broken for their patience or
        longer.
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
        """Whether a rule that could roll back is being broken, so that a checkpoint might hold the fault."""
        return any(row.values for row in self._rows if row.rule.action == "rollback")

    @property
    def unseen(self) -> list[str]:
        """Metrics of the user's rules that no step has recorded."""
        return sorted(self._unseen)


class _Faults:
    """The faults of one rule in a row."""

    def __init__(self, rule: WatchRule) -> None:
        self.rule = rule
        self.since = 0
        self.values: list[float] = []

    def add(self, step: int, value: float) -> bool:
        """Take in a value; True when it uses up the patience."""
        if not self.rule.broken_by(value):
            self.values = []
            return False
        self.since = self.since if self.values else step
        self.values.append(value)
        return len(self.values) == self.rule.patience

    @property
    def lasts(self) -> bool:
        return len(self.values) >= self.rule.patience

    def fire(self, step: int, signs: list[str]) -> Firing:
        """After `stop` the count starts anew, so that a resumed run stops again if the fault is still there."""
        told = signs if self.rule.metric == HACKING else []
        firing = Firing(self.rule, step, self.since, self.values[-self.rule.patience :], told)
        if self.rule.action == "stop":
            self.values = []
        return firing
