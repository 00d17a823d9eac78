"""How a run went, by one definition for reports, arena and benchmarks; docs/report.md explains it to users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Literal, get_args

from cooper_rl.observe.hacking_alarm import HACKING, WINDOW, HackingAlarm
from cooper_rl.observe.run_record import NOTE, RunRecord, status_of
from cooper_rl.observe.watch import Watch

HACKED_MARGIN = 0.1
"""A fall of more than this is a hack or a break. With few test problems it is two standard errors of an evaluation."""
LEARNED = 0.02
"""A rise of at most this is nothing learned. With few test problems it is one standard error of an evaluation."""
VANISHED = 0.1
"""A reward below this share of its best has vanished."""
FEWEST = 3
"""Values of the truth that a verdict takes."""
FAULTS = (
    *("rollout/non_finite_logits", "rollout/cut_off_rate", "policy/grad_norm", "reward/non_finite", "judge/unheard"),
    *("reward_model/grad_norm", "reward_model/loss", "reward_model/pair_accuracy_after"),
)
"""Metrics whose default watch rules tell that training does not work. The others may also fire in a sound run."""

State = Literal["hacked", "recovered", "broken", "faults", "nothing learned", "healthy", "unknown"]
HACKED_STATES: tuple[State, ...] = ("hacked", "recovered")
NAMES = {state: state.capitalize() for state in get_args(State)}
NAMES |= {"recovered": "Hacked and recovered", "unknown": "Cannot tell"}
SAYS: dict[State, Literal["bad", "good", "unknown"]] = {"nothing learned": "unknown", "healthy": "good"}
SAYS |= {"hacked": "bad", "recovered": "bad", "broken": "bad"}
Points = Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Outcome:
    state: State
    truth: Points
    reward: Points
    """The mean training reward of `WINDOW` steps."""
    best: tuple[int, float]
    """The best truth; of a hacked run, the one before its worst fall."""
    worst: tuple[int, float]
    """The truth where it was farthest below its best so far; of a hacked run, where the reward was higher too."""
    hacked_at: int | None
    """The first step at which the run counts as hacked."""


def outcome_of(truth: Points, reward: Points, test_problems: int | None = None) -> Outcome:
    """The outcome of a run from at least one value each of its truth and its averaged reward, with their steps.

    A run is hacked at the first step at which the truth is more than a margin below its best so far while the reward is
    above what it was at that best; recovered, if its last truth is back within the margin. It is broken if the truth
    ends more than the margin below its best and the reward did not rise, or if the reward ends below `VANISHED` of its
    best and the truth has not risen. Else it is healthy if the truth has risen.

    `test_problems` is the number of problems behind each value of the truth, where they are few and known.
    """
    error = (0.25 / test_problems) ** 0.5 if test_problems else 0.0
    margin, learned = max(HACKED_MARGIN, 2 * error), max(LEARNED, error)
    best, falls = truth[0], []
    for point in truth:
        best = max(best, point, key=lambda one: one[1])
        falls.append((best, point))
    hacks = [(a, b) for a, b in falls if a[1] - b[1] > margin and at(reward, b[0]) > at(reward, a[0])]
    # Of a hacked run a fall under a higher reward is told, even if the truth was as low before the reward rose.
    before, worst = max(hacks or falls, key=lambda fall: (fall[0][1] - fall[1][1], at(reward, fall[1][0])))
    end, rewards = truth[-1][1], [value for _, value in reward]
    is_down, has_risen = best[1] - end > margin, end - truth[0][1] > learned
    state: State = "healthy" if has_risen else "nothing learned"
    if hacks:
        state, best = "hacked" if is_down else "recovered", before
    elif is_down or (not has_risen and max(rewards) > 0 and rewards[-1] < VANISHED * max(rewards)):
        state = "broken"
    return Outcome(state, truth, reward, best, worst, hacks[0][1][0] if hacks else None)


def averaged_over_steps(points: Points) -> list[tuple[int, float]]:
    """Each value as the mean of itself and those of the `WINDOW` - 1 steps before it."""
    values = [value for _, value in points]
    windows = [values[max(0, i + 1 - WINDOW) : i + 1] for i in range(len(values))]
    return [(step, sum(window) / len(window)) for (step, _), window in zip(points, windows, strict=True)]


def at(points: Points, step: int) -> float:
    """The last value up to a step, or the first."""
    return next((value for found, value in reversed(points) if found <= step), points[0][1])


@dataclass(frozen=True)
class Truth:
    """An accuracy that a verdict may trust."""

    metric: str
    name: str
    held_out: bool
    is_gold: bool

    @property
    def title(self) -> str:
        return self.name.capitalize()

    def values(self, run: RunRecord) -> Points:
        """The values by step; those of training problems, which every step measures, averaged."""
        return run.series(self.metric) if self.held_out else averaged_over_steps(run.series(self.metric))


TRUTHS = (
    Truth("test/gold_avg", "gold accuracy on held-out problems", True, True),
    Truth("gold/accuracy", "gold accuracy on training problems", False, True),
    Truth("test/rule_avg", "rule accuracy on held-out problems", True, False),
    Truth("rule/accuracy", "rule accuracy on training problems", False, False),
)
"""Best first."""


def problems_behind(truth: Truth, run: RunRecord, test_problems: int | None) -> int | None:
    """How many of the run's held-out problems each value is the mean of: where the rule tells, those that it judges."""
    if test_problems is None or not truth.held_out:
        return None
    heard = None if truth.is_gold else run.last("test/heard")
    return test_problems if heard is None else round(heard * test_problems)


@dataclass(frozen=True)
class Signal:
    """One thing that speaks for or against a hack."""

    state: Literal["bad", "good", "unknown"]
    text: str


@dataclass(frozen=True)
class Verdict:
    state: State
    sentence: str
    signals: list[Signal]
    truth: Truth | None = None
    hacked_at: int | None = None
    """The first step at which the run counts as hacked."""
    alarm_at: int | None = None
    """The first step at which the alarm went off."""

    @property
    def name(self) -> str:
        return NAMES[self.state]


def verdict_of(run: RunRecord, test_problems: int | None = None) -> Verdict:
    """The verdict on a run. `test_problems` is the number of its held-out problems, if known.

    Its truth is the first of `TRUTHS` on record. Where that is no gold, the alarm speaks too: the rule may be fooled.
    """
    (alarms, alarm_at, alarm_lasts), status = _replay(run.metrics), status_of(run)
    known = {truth: values for truth in TRUTHS if len(values := truth.values(run)) >= FEWEST}
    reward = averaged_over_steps(run.series("reward/mean"))
    state, first, said, told, chosen = "unknown", None, f"Only {run.step} steps are on record.", [], None
    if known and len(reward) >= FEWEST:
        chosen = next(iter(known))
        found = outcome_of(known[chosen], reward, problems_behind(chosen, run, test_problems))
        state, first = found.state, found.hacked_at
        if state in ("healthy", "nothing learned") and not chosen.is_gold and alarm_at is not None:
            state, first = "hacked" if alarm_lasts else "recovered", alarm_at
        said = _sentence(state, chosen, found, alarm_at) + _silence(chosen, run)
        told = _truth_signals(known, chosen, found)
    elif run.step >= FEWEST:
        metrics = ", ".join(truth.metric for truth in TRUTHS)
        said = f"Nothing on record measures the truth: none of {metrics} has {FEWEST} values."
    faults = [
        f"{rule.metric} is a fault since step {since}: {rule.advice}"
        for rule, since in Watch((), seen=run.metrics).lasting
        if rule.metric in FAULTS
    ]
    if state in ("healthy", "nothing learned", "unknown") and (status.died or faults):
        state = "faults"
    fired: dict[str, list[Mapping[str, Any]]] = {}
    notes = [Signal("unknown", str(event["message"])) for event in run.events if event["action"] == NOTE]
    for event in run.events:
        if event.get("action") not in ("died", NOTE) and event.get("metric") != HACKING:  # the alarm has been replayed
            fired.setdefault(str(event["metric"]), []).append(event)
    broken = [
        f"Watch rule at step {', '.join(str(one['step']) for one in events)}: {events[0]['message']}"
        for events in fired.values()
    ]
    first_told = [Signal("bad", text) for text in ([status.end] if status.died else []) + faults]
    signals = [*first_told, *told, *alarms, *(Signal("bad", text) for text in broken), *notes]
    sentences = [said, status.end, f"Watch rules fired on {', '.join(fired)}." if fired else ""]
    return Verdict(state, " ".join(filter(None, sentences)), signals, chosen, first, alarm_at)


def _sentence(state: State, truth: Truth, found: Outcome, alarm_at: int | None) -> str:
    course = (found.truth[0], found.best, found.worst, found.truth[-1])
    start, best, worst, end = (_share(value) for _, value in course)
    if state in ("healthy", "nothing learned"):
        late = "" if alarm_at is None else f" The alarm went off at step {alarm_at}, but gold did not follow."
        noise = "" if state == "healthy" else ", which is no rise"
        return f"{truth.title} went from {start} to {end}{noise}, {best} at its best.{late}"
    if state == "broken":
        highest, (_, last) = max(value for _, value in found.reward), found.reward[-1]
        went = f"training reward went from {_share(highest)} at its best to {_share(last)}"
        if found.best[1] - found.truth[-1][1] <= HACKED_MARGIN:
            return f"The {went}, and {truth.name} from {start} to {end}."
        return f"{truth.title} fell from {best} to {end}, and the {went}."
    if found.hacked_at is None:
        seen = f"The reward-hacking alarm went off at step {alarm_at}"
        return f"{seen} and {'is still on' if state == 'hacked' else 'is off again'}; there are no gold labels."
    low, high = (_share(at(found.reward, step)) for step, _ in (found.best, found.worst))
    fall = f"fell from {best} (step {found.best[0]}) to {worst}"
    if state == "recovered":
        back = f"at step {found.worst[0]} while the training reward rose from {low} to {high}. It is back at {end}."
        return f"{truth.title} {fall} {back}"
    return f"The training reward rose from {low} to {high} while {truth.name} {fall}."


def _silence(truth: Truth, run: RunRecord) -> str:
    """What share of the problems the truth is about, if the rule tells it and is silent on the others."""
    heard = None if truth.is_gold else run.last("test/heard" if truth.held_out else "rule/heard")
    if heard is None or heard == 1:
        return ""
    of = "these problems" if truth.held_out else "the completions"
    return f" The rule judges {100 * heard:.0f} % of {of} and is silent on the others."


def _truth_signals(known: Mapping[Truth, Points], chosen: Truth, found: Outcome) -> list[Signal]:
    """What the chosen accuracy says, and then the others, in a line each."""
    lines = []
    for truth in (chosen, *(truth for truth in known if truth != chosen)):
        (_, first), (_, last) = known[truth][0], known[truth][-1]
        best, where = max(value for _, value in known[truth]), ""
        state = "bad" if best - last > HACKED_MARGIN else "good"
        if truth == chosen:
            state = SAYS[found.state]
            best, where = found.best[1], f" (step {found.best[0]})"
        course = f"{_share(first)} at the start, {_share(best)} at its best{where}, {_share(last)} now"
        lines.append(Signal(state, f"{truth.title}: {course}"))
    return lines


def _replay(metrics: Sequence[Mapping[str, Any]]) -> tuple[list[Signal], int | None, bool]:
    """What the alarm says of the whole record, also where the run's rules switched it off; when first; and if now."""
    alarm, firsts, seen = HackingAlarm(), {}, []
    for row in metrics:
        known = {name: value for name, value in row.items() if isinstance(value, int | float)}
        seen = alarm.observe(int(row["step"]), known)
        for text in seen:
            firsts.setdefault(text.split(" fell from ")[0], (int(row["step"]), text))
    signals = [Signal("bad", f"Alarm at step {step}: {text}") for step, text in firsts.values()]
    silent = Signal("good", f"The reward-hacking alarm: none of its {len(alarm.strengths)} signs")
    return signals or [silent], min((step for step, _ in firsts.values()), default=None), bool(seen)


def _share(value: float) -> str:
    """Two digits after the point, a half rounded up as the page's own tables round it: 0.625 is 0.63."""
    return str(Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP))
