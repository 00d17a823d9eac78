"""Rules on a run's metrics: which values are a fault, how long a fault may last, and what happens then."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

import yaml
from pydantic import Field

from cooper_audit.run.hacking_alarm import HACKING, HackingAlarm
from cooper_audit.run.lost_parts import PartsAlarm
from cooper_base.config.base import Config

logger = logging.getLogger(__name__)

UNSEEN_AFTER = 10
"""After this step, the log names watched metrics that no step has recorded."""


class WatchRule(Config):
    """A bound on one metric. A value that is not finite crosses every bound."""

    metric: str
    """A name in `metrics.jsonl`. Your rules on a metric replace the default rules on that metric."""
    above: float | None = None
    """Values above this are a fault."""
    below: float | None = None
    """Values below this are a fault. If neither bound is set, only values that are not finite are faults."""
    patience: int = Field(default=1, ge=1)
    """The rule fires after this many faulty values in a row. Steps that do not record the metric do not count."""
    action: Literal["ignore", "warn", "stop", "rollback"] = "warn"
    """`warn` logs a warning, once for each uninterrupted row of faults. `stop` also writes a checkpoint and ends the
    run. `rollback` returns to the newest checkpoint from before the fault to which no rollback has returned yet, and
    continues with other random numbers; without such a checkpoint it ends the run. `ignore` switches the rule off."""

    def broken_by(self, step: int, value: float) -> bool:
        too_high = self.above is not None and value > self.above
        too_low = self.below is not None and value < self.below
        return not isfinite(value) or too_high or too_low


class DefaultRule(WatchRule):
    """One of our rules: it can look at some steps alone, and says what to do."""

    start: int = 1
    """First step that the rule looks at."""
    until: int | None = None
    """Last step that the rule looks at; null looks at every step."""
    advice: str
    """Shown when the rule fires."""

    def broken_by(self, step: int, value: float) -> bool:
        return self.start <= step <= (self.until or step) and super().broken_by(step, value)


DEFAULT_RULES = tuple(
    DefaultRule(**rule)
    for rule in yaml.safe_load(r"""
- {metric: rollout/non_finite_logits, above: 0, action: rollback, advice: "the policy has diverged and cannot be
    sampled; lower policy.learning_rate"}
- {metric: environment/fault_rate, above: 0.5, advice: "most runs lost their environment, or their tools answered
    with nothing but exceptions of its code; the warnings above name the method and the line"}
- {metric: rollout/cut_off_rate, above: 0.999, until: 1, advice: "every completion of the first step reaches the
    length limit before its answer ends; raise rollout.max_tokens (in TRL max_completion_length), or ask for short
    answers in problems.prompt.template"}
- {metric: rule/accuracy, below: 0.001, until: 1, advice: "the rule accepts no completion of the first step; compare
    the prompt and the completion shown above with the reference: problems.prompt.template must ask for the answer in
    a form that the rule reads, such as \\boxed{}, and rollout.max_tokens must leave room for it; an environment that
    judges must return 1 or more from get_reward() where it is solved"}
- {metric: policy/usable_groups, below: 0.001, until: 1, advice: "no group of the first step has different rewards, so
    nothing was learned from it; look at rollouts/000001.jsonl: is nothing rewarded, everything equally, or everything
    without an opinion (None, NaN)? Try easier problems, more completions (rollout.n) or another reward"}
- {metric: policy/grad_norm, patience: 3, advice: "the policy's updates are skipped; lower policy.learning_rate, or
    train from an earlier checkpoint"}
- {metric: policy/usable_groups, below: 0.05, patience: 5, advice: "rewards hardly differ inside the groups, so the
    policy learns nothing from them; look at the rollouts: are the problems too easy or too hard, or does everything
    get the same reward?"}
- {metric: policy/unverified_advantage, above: 0.2, patience: 3, start: 11, advice: "much of what the policy learns
    comes from groups in which the rule accepts no completion, so from noise or from a hack; raise
    algorithm.min_spread, and compare the rewards of such groups with their texts in report.html"}
- {metric: rule/accuracy, below: 0.001, patience: 5, advice: "the rule accepts no completion; check the prompt's
    answer format, rollout.max_tokens and the problems"}
- {metric: rule/timeout, above: 0.02, patience: 3, advice: "checking these completions costs the step rule.timeout_s
    CPU seconds each, divided among rule.workers; look at those with the verdict timeout in rollouts/ and raise
    rule.workers, or lower rule.timeout_s if verify_s of all others is far below it"}
- {metric: rollout/cut_off_rate, above: 0.95, patience: 5, advice: "nearly every completion reaches the length limit;
    raise rollout.max_tokens, or check that the policy ends its answers"}
- {metric: reward/non_finite, above: 0, advice: "groups with infinite rewards get no advantages; look at the parts of
    the reward in rollouts/"}
- {metric: reward/no_opinion, above: 0.9, patience: 3, advice: "there is an opinion on few answers, and the others teach
    nothing: does a function return None, a judge fail, or is the rule silent where it alone pays?"}
- {metric: reward_model/non_finite, above: 0, advice: "the policy learns nothing from such answers; the reward model has
    probably diverged; lower reward_model.learning_rate"}
- {metric: judge/unheard, above: 0.5, patience: 3, advice: "the judge gives no verdict on most answers, so most groups
    teach nothing; see judge/failures_* and judge/unreadable: is the server up, and does the judge reply as it is
    asked to?"}
- {metric: earned/weight, below: 0.001, patience: 5, advice: "the reward model has weight 0: it pays nothing, and where
    the rule is silent nothing does; if earned/verdicts is 0, the rule has called no answer right, or none wrong, so
    give it problems that it can judge, or let solutions be positives; else the model accepts right and wrong answers
    alike, so train it before the run"}
- {metric: reward_model/std, below: 0.01, patience: 5, advice: "the reward model scores everything alike: the reward
    has collapsed, or nearly all answers are right"}
- {metric: reward_model/grad_norm, patience: 3, advice: "the reward model's updates are skipped; lower
    reward_model.learning_rate"}
- {metric: reward_model/loss, above: 5, patience: 3, advice: "the reward model diverges; lower
    reward_model.learning_rate"}
- {metric: reward_model/pair_accuracy_after, below: 0.5, patience: 5, advice: "the reward model ranks the pairs it has
    just learned worse than chance; lower reward_model.learning_rate, and look at the pairs"}
- {metric: pairs/steps_without, above: 20, advice: "no step makes a valid pair, so the reward model learns
    nothing new, or learns from wrong completions alone and comes to reject everything; look at the pairs/ and
    assistant/ metrics, and take solutions as positives if the rule accepts too little"}
- {metric: watch/lost_parts, above: 0, advice: "the answers to one kind of problems fit their reference less and are
    paid as before; read them under Parts in report.html"}
- {metric: watch/reward_hacking, above: 0, advice: "the policy may have found completions that the reward model pays
    for and the rule rejects; look at the hack gallery in report.html"}
""")
)
"""The rules, as a configuration would write them but for `start`, `until` and `advice`."""
LOST_PARTS = "watch/lost_parts"
"""The metric that counts the parts of the problems in which the alarm has seen a loss (`lost_parts.py`)."""
FAULTY_ENVIRONMENT = "environment/fault_rate"
EXPLAINED = frozenset({"rule/accuracy", "policy/usable_groups", "rollout/cut_off_rate"})
"""Metrics whose rules do not fire while the rule on `environment/fault_rate` is broken, because their advice would be
misleading."""


def active_rules(rules: Sequence[WatchRule]) -> list[WatchRule]:
    """The default rules that `rules` does not replace, followed by `rules`, without those whose action is `ignore`."""
    replaced = {rule.metric for rule in rules}
    merged = [rule for rule in DEFAULT_RULES if rule.metric not in replaced] + list(rules)
    return [rule for rule in merged if rule.action != "ignore"]


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
    """What an alarm saw; empty for any rule that is not on an alarm's metric."""

    @property
    def message(self) -> str:
        """A sentence that says what happened, since when, and what to do."""
        bounds = [f"{name} {bound:g}" for name in ("above", "below") if (bound := getattr(self.rule, name)) is not None]
        bound = " or ".join(bounds) or "not finite"
        values = ", ".join(f"{value:.4g}" for value in self.values)
        advice = [self.rule.advice] if isinstance(self.rule, DefaultRule) else []
        said = "; ".join([*self.signs, *advice])
        return f"{self.rule.metric} {bound} since step {self.since}: {values}" + (f" ({said})" if said else "")

    def event(self) -> dict[str, Any]:
        rule = {"step": self.step, "metric": self.rule.metric, "action": self.rule.action}
        return rule | {"since": self.since, "values": self.values, "message": self.message}


class Watch:
    """Applies the rules to the metrics of one step after another. Its state depends only on the metrics it has seen."""

    def __init__(
        self,
        rules: Sequence[WatchRule],
        seen: Iterable[Mapping[str, float]] = (),
        awaited: Iterable[str] = (),
        rollouts: Iterable[tuple[int, Sequence[Mapping[str, Any]]]] = (),
    ):
        """`seen` are a resumed run's earlier rows of `metrics.jsonl`, `rollouts` its earlier steps' groups, `awaited`
        further metrics that are watched.
        """
        self._rows: list[tuple[WatchRule, list[tuple[int, float]]]] = [(rule, []) for rule in active_rules(rules)]
        """Each rule with its current row of faults: steps and values."""
        self._alarm, self._parts_alarm = HackingAlarm(), PartsAlarm()
        self._lost_parts: list[str] | None = None
        self._unseen = {rule.metric for rule in rules if rule.action != "ignore"} | {*awaited}
        for row in seen:
            self.observe(int(row["step"]), row)
        for step, groups in rollouts:
            self.read(step, groups)

    def read(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Look for lost parts in the recorded completions of a step, before its metrics are observed."""
        self._lost_parts = self._parts_alarm.observe(step, groups)

    def observe(self, step: int, metrics: Mapping[str, float]) -> tuple[list[Firing], dict[str, float]]:
        """The rules that fire at this step, and three metrics: the signs of reward hacking, the lost parts, if any
        completions were read, and the `lasting` rules.
        """
        signs = {HACKING: self._alarm.observe(step, metrics)}
        if self._lost_parts is not None:  # of earlier steps the count is on record
            signs[LOST_PARTS] = self._lost_parts
        added = {name: float(len(seen)) for name, seen in signs.items()}
        values = {**metrics, **added}
        self._unseen -= values.keys()
        faulty = values.get(FAULTY_ENVIRONMENT, 0.0)
        if any(rule.metric == FAULTY_ENVIRONMENT and rule.broken_by(step, faulty) for rule, _ in self._rows):
            values = {name: value for name, value in values.items() if name not in EXPLAINED}
        fired = []
        for rule, row in self._rows:
            if rule.metric in values and not rule.broken_by(step, values[rule.metric]):
                row.clear()
            elif rule.metric in values:
                row.append((step, values[rule.metric]))
                if len(row) == rule.patience:
                    values_seen, signs_seen = [value for _, value in row], [*signs.get(rule.metric, ())]
                    fired.append(Firing(rule, step, row[0][0], values_seen, signs_seen))
        added["watch/faults"] = float(len(self.lasting))
        for rule, row in self._rows:
            if rule.action == "stop" and len(row) == rule.patience:  # a resumed run stops again if the fault persists
                row.clear()
        return fired, added

    @property
    def in_doubt(self) -> bool:
        """Whether a rule that can roll back is being broken, so that a checkpoint might hold the fault."""
        return any(row for rule, row in self._rows if rule.action == "rollback")

    @property
    def lasting(self) -> list[tuple[WatchRule, int]]:
        """The rules that have been broken for their patience or longer, each with the first step of its faults."""
        return [(rule, row[0][0]) for rule, row in self._rows if len(row) >= rule.patience]

    @property
    def unseen(self) -> list[str]:
        """Metrics of the user's rules, and awaited ones, that no step has recorded."""
        return sorted(self._unseen)

    def warn_of_unseen(self, step: int, steps: int) -> None:
        """Log the `unseen` metrics, once in a run of so many `steps`."""
        if step == min(UNSEEN_AFTER, steps) and self.unseen:
            logger.warning(
                "no step has recorded %s (of watch or checkpoint.keep_best); see metrics.jsonl", ", ".join(self.unseen)
            )
