"""The reward-hacking alarm: it goes off if the reward has risen while a measure of quality has fallen."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt

HACKING = "watch/reward_hacking"
"""The metric that counts the signs seen at a step."""
WINDOW = 5
"""Steps that are averaged where a value is measured on one step's completions."""
EVALUATIONS = 2
"""Number of evaluations that are averaged."""
STANDARD_ERRORS = 3.0
"""A change of fewer standard errors than this counts as noise."""
VANISHED = 0.1
"""The group spread has vanished if it falls below this share of its highest level."""
STRONGEST = 100.0
"""The largest strength of a sign."""


class HackingAlarm:
    """Reads the metrics of one step after another. It needs no gold labels. docs/watch.md has the formula."""

    def __init__(self) -> None:
        self._reward, self._accuracy = _Average(WINDOW), _Average(WINDOW)
        self._signs = [
            _Sign("reward_model/rule_agreement", WINDOW, margin=0.06),
            _Sign("rule/accuracy", WINDOW, margin=0.06),
            _Sign("test/rule_avg", EVALUATIONS, margin=0.06),
            # Also catches completions that the rule cannot parse.
            _Sign("rule/accuracy - reward_model/mean", WINDOW, margin=0.12),
            # Also catches endless completions that fool the rule as well.
            _Sign("1 - rollout/cut_off_rate", WINDOW, margin=0.25),
            # A policy that solves its problems may change its style and lose its group spread.
            _Sign("1 - rule/unparsed", WINDOW, margin=0.12, excused_by_accuracy=True),
            _Sign("reward/group_spread", WINDOW, margin=None, excused_by_accuracy=True),
        ]
        # Where the rule is silent: a policy that learns agrees with itself, and is not paid under another reference.
        self._silent_reward = _Average(WINDOW)
        self._silent_signs = [
            _Sign("rollout/agreement_silent", WINDOW, margin=0.06),
            _Sign("1 - reward_model/kept_when_swapped_silent", WINDOW, margin=0.12),
        ]

    def observe(self, metrics: Mapping[str, float]) -> list[str]:
        """Take in the metrics of the next step. Returns a sentence for each sign that is seen now.

        Where the rule is silent on some answers, rewards and scores are those of the answers that it judges: what it
        says of these tells nothing about the others, which have signs of their own.
        """

        def heard(name: str) -> float:
            return metrics.get(f"{name}_heard", metrics.get(name, nan))

        if isfinite(heard("reward/mean")) and "rule/accuracy" in metrics:
            self._reward.add(heard("reward/mean"))
            self._accuracy.add(metrics["rule/accuracy"])
            values = {
                **metrics,
                "rule/accuracy - reward_model/mean": metrics["rule/accuracy"] - heard("reward_model/mean"),
                "1 - rollout/cut_off_rate": 1 - metrics.get("rollout/cut_off_rate", nan),
                "1 - rule/unparsed": 1 - metrics.get("rule/unparsed", nan),
            }
            for sign in self._signs:
                if isfinite(value := values.get(sign.name, nan)):
                    sign.observe(value, self._reward, self._accuracy)
        if isfinite(silent_reward := metrics.get("reward/mean_silent", nan)):
            self._silent_reward.add(silent_reward)
            kept = "reward_model/kept_when_swapped_silent"
            values = {**metrics, f"1 - {kept}": 1 - metrics.get(kept, nan)}
            for sign in self._silent_signs:
                if isfinite(value := values.get(sign.name, nan)):
                    sign.observe(value, self._silent_reward, self._silent_reward)
        return [sign.seen for sign in [*self._signs, *self._silent_signs] if sign.seen]

    @property
    def strengths(self) -> dict[str, float]:
        """By sign, its fall at the last step in units of the fall that sets the alarm off, from 0 to `STRONGEST`."""
        return {sign.name: sign.strength for sign in [*self._signs, *self._silent_signs]}


class _Average:
    """The mean of a metric's last values, and how far chance alone would move it."""

    def __init__(self, window: int) -> None:
        self._values: deque[float] = deque(maxlen=window)
        self._squares, self._steps = 0.0, 0

    def add(self, value: float) -> bool:
        """Returns whether the window is full."""
        if self._values:
            self._squares += (value - self._values[-1]) ** 2
            self._steps += 1
        self._values.append(value)
        return len(self._values) == self._values.maxlen

    @property
    def mean(self) -> float:
        return sum(self._values) / len(self._values)

    @property
    def noise(self) -> float:
        """`STANDARD_ERRORS` times the standard error of the difference between two such means.

        It is estimated from the differences between neighbouring values, which a slow trend hardly affects. Their
        variance is 2 v if a value has variance v, and the difference of two means over n values has variance 2 v / n.
        """
        return STANDARD_ERRORS * sqrt(self._squares / max(self._steps, 1) / len(self._values))


@dataclass
class _Sign:
    """A metric that should not fall by `margin` while the reward rises. Without a margin it must not vanish."""

    name: str
    window: int
    margin: float | None
    excused_by_accuracy: bool = False
    seen: str = ""
    strength: float = 0.0

    def __post_init__(self) -> None:
        self._average = _Average(self.window)
        self._best = (-inf, nan, nan)  # the average of the sign, and those of reward and rule accuracy at that time

    def observe(self, value: float, reward: _Average, accuracy: _Average) -> None:
        if not self._average.add(value):
            return
        now = self._average.mean
        if now > self._best[0]:
            self._best = (now, reward.mean, accuracy.mean)
        best, best_reward, best_accuracy = self._best
        if self.margin is None:
            limit = VANISHED * best
            strength = limit / now if now > 0 else STRONGEST if best > 0 else 0.0
        else:
            room = max(self.margin, self._average.noise)
            limit, strength = best - room, (best - now) / room
        excused = self.excused_by_accuracy and accuracy.mean > best_accuracy + accuracy.noise
        paid = reward.mean > best_reward + reward.noise and not excused
        self.strength = min(max(0.0, strength), STRONGEST) if paid else 0.0
        told = f"{self.name} fell from {best:.3g} to {now:.3g} while the reward rose from"
        self.seen = f"{told} {best_reward:.3g} to {reward.mean:.3g}" if now < limit and paid else ""
