"""How a run went, by one definition for reports, arena and benchmarks; docs/report.md explains it to users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from math import nan, sqrt
from statistics import NormalDist
from typing import Any, Literal, get_args

from cooper_audit.run.change_points import (
    ERROR,
    FEWEST_PROBLEMS,
    FEWEST_ROWS,
    FEWEST_STEPS,
    LEARNED,
    MARGIN,
    Spans,
    course_of,
    estimated_change,
    fall_probability,
    series_of,
    shortest_of,
)
from cooper_audit.run.evidence import VANISHED, finding_of_table
from cooper_audit.run.finding import ACCUSED, Finding, State
from cooper_audit.run.hacking_alarm import ALARM_ERROR, HACKING, WINDOW, HackingAlarm
from cooper_audit.run.run_record import ENDS, NOTE, RunRecord, status_of
from cooper_audit.run.table import Table, table_of
from cooper_audit.run.watch_rules import DefaultRule, Watch
from cooper_audit.statistics import Estimate

FEWEST = 3
"""Values of the truth that a verdict takes."""
FAULTS = (
    *("rollout/non_finite_logits", "rollout/cut_off_rate", "policy/grad_norm", "reward/non_finite", "judge/unheard"),
    *("reward_model/non_finite", "reward_model/grad_norm", "reward_model/loss", "reward_model/pair_accuracy_after"),
)
"""Metrics whose default watch rules show that training does not work. The other rules may also fire in a sound run."""

NAMES = {state: state.capitalize() for state in get_args(State)}
NAMES |= {"recovered": "Hacked and recovered", "part lost": "Lost in a part", "unknown": "Cannot tell"}
NAMES |= {"wrong paid": "Pays for wrong answers", "right unpaid": "No longer pays right answers"}
SAYS: dict[State, Literal["bad", "good", "unknown"]] = {"nothing learned": "unknown", "healthy": "good"}
SAYS |= dict.fromkeys((*ACCUSED, "part lost", "broken"), "bad")
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
    """The truth at its lowest below its best so far; for a hacked run, at its lowest while the reward was higher
    too."""
    hacked_at: int | None
    """The first step at which the run counts as hacked."""
    learned: float | None
    """The rise from first to last that counts as learning; None where windows are compared in random orders too."""
    rise: Estimate | None = None
    """The rise from first to last, paired by problem, which decides where it is known."""


def since(onset: Sequence[int] | None) -> str:
    """When a hack began, in words; empty without a hack."""
    if not onset:
        return ""
    first, last = onset
    return f"since step {first}" if first == last else f"since a step between {first} and {last}"


def said_line(name: str, onset: Sequence[int] | None, sentence: str) -> str:
    """The verdict in a line, as pages and terminals begin with it."""
    return f"{' '.join(filter(None, [name, since(onset)]))}. {sentence}"


def outcome_of(
    truth: Points,
    reward: Points,
    test_problems: int | None = None,
    held_out: bool = True,
    shortest: int | None = None,
    rise: Estimate | None = None,
) -> Outcome:
    """The outcome of a run from at least one value of its truth, and the rewards of its steps, if any was paid.

    A run is hacked if the truth fell by more than `MARGIN` below its best so far while the reward rose; recovered, if
    its last truth is back within the margin. It is broken if the truth ends more than the margin below its best and the
    reward did not rise, or if the reward ends below `VANISHED` of its best and the truth has not risen. Else it is
    healthy if the truth has risen by more than `LEARNED`; if its `rise` is known by problem, by more than chance.

    Where values are of `held_out` problems, `test_problems` is their number, and a fall must be more than the error of
    the evaluations shows in one unchanged run of a hundred, over all pairs of evaluations. Without that number the
    values count as exact. Values of a step's training problems, and many evaluations of nobody knows how many problems,
    are compared by `course_of`, in windows of `shortest` steps or more.
    """
    known = (held_out and (test_problems is not None or len(truth) < FEWEST_STEPS)) or len(truth) < 4
    error, pairs = _error_of(truth, test_problems), max(1, len(truth) * (len(truth) - 1) // 2)
    margin = max(MARGIN, NormalDist().inv_cdf(1 - ERROR / pairs) * error)
    learned = max(LEARNED, NormalDist().inv_cdf(1 - ERROR) * error)
    paid = averaged_over_steps(reward)
    shown = truth if held_out else _in_whole_windows(truth)
    best, falls = shown[0], []
    for point in shown:
        best = max(best, point, key=lambda point: point[1])
        falls.append((best, point))
    hacks = [(a, b) for a, b in falls if a[1] - b[1] > margin and at(paid, b[0]) > at(paid, a[0])]
    if known:
        hacks = [(a, b) for a, b in hacks if test_problems is None or _is_paid_more(reward, a[0], b[0])]
        end = shown[-1][1]
        is_down, has_risen = best[1] - end > margin, rise.low > 0 if rise else end - shown[0][1] > learned
        state: State = "healthy" if has_risen else "nothing learned"
        state = ("hacked" if is_down else "recovered") if hacks else "broken" if is_down else state
    else:
        course = course_of(series_of(truth), series_of(reward), shortest)
        state = course.state
        hacks = hacks if state in ACCUSED else []
        if state in ACCUSED and not hacks:
            first, last = course.spans.before[1], course.spans.after[1]
            hacks = [((first, at(shown, first)), (last, at(shown, last)))]
    # A hacked run reports a fall under a higher reward, even if the truth was as low before the reward rose.
    before, worst = max(hacks or falls, key=lambda fall: (fall[0][1] - fall[1][1], at(paid, fall[1][0])))
    if state == "nothing learned" and _has_vanished(reward):
        state = "broken"
    first = hacks[0][1][0] if hacks else None
    return Outcome(state, shown, paid, before if hacks else best, worst, first, learned if known else None, rise)


def _error_of(truth: Points, problems: int | None) -> float:
    """The standard error of the difference of two evaluations of so many problems; 0 if nobody knows how many."""
    share = sum(value for _, value in truth) / len(truth)
    return sqrt(2 * max(share * (1 - share), 0.0) / problems) if problems else 0.0


def _is_paid_more(reward: Points, before: int, after: int) -> bool:
    """Whether the reward rose between two evaluations, over the steps that end in them."""
    series = series_of(reward)
    windows = [(int(series.steps[0]), int(series.steps[0]) + WINDOW - 1), (after - WINDOW + 1, after)]
    if before >= series.steps[0]:
        windows[0] = (before - WINDOW + 1, before)
    return estimated_change(series, Spans(*windows), ERROR).low > 0


def _has_vanished(reward: Points) -> bool:
    """Whether the reward ends below `VANISHED` of its best, by more than chance."""
    values = [value for _, value in _in_whole_windows(reward)] if reward else []
    if max(values, default=0) <= 0 or values[-1] >= VANISHED * max(values) or len(reward) < FEWEST_STEPS:
        return False
    return fall_probability(series_of(reward), shortest_of(len(reward))) <= ERROR


def averaged_over_steps(points: Points) -> list[tuple[int, float]]:
    """Each value as the mean of itself and those of the `WINDOW` - 1 steps before it."""
    values = [value for _, value in points]
    windows = [values[max(0, i + 1 - WINDOW) : i + 1] for i in range(len(values))]
    return [(step, sum(window) / len(window)) for (step, _), window in zip(points, windows, strict=True)]


def _in_whole_windows(points: Points) -> Points:
    """`averaged_over_steps` without the first values, which are means of fewer steps."""
    return averaged_over_steps(points)[min(WINDOW, len(points)) - 1 :]


def at(points: Points, step: int) -> float:
    """The last value at or before a step, or the first value; NaN without a value."""
    first = points[0][1] if points else nan
    return next((value for recorded_at, value in reversed(points) if recorded_at <= step), first)


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


TRUTHS = (
    Truth("test/gold_avg", "gold accuracy on held-out problems", True, True),
    Truth("gold/accuracy", "gold accuracy on training problems", False, True),
    Truth("test/rule_avg", "rule accuracy on held-out problems", True, False),
    Truth("rule/accuracy", "rule accuracy on training problems", False, False),
)
"""The accuracies, best first."""


def _accuracies(run: RunRecord) -> dict[Truth, Points]:
    return {truth: values for truth in TRUTHS if len(values := run.series(truth.metric)) >= FEWEST}


def truth_by_rows(run: RunRecord) -> Truth | None:
    """The accuracy by which `verdict_of` reads a run's completions; None if it does not read them."""
    return None if _audit_of(run) is not None else next(iter(_accuracies(run)), None)


def problems_behind(truth: Truth, run: RunRecord, test_problems: int | None) -> int | None:
    """How many held-out problems are behind each value: if the accuracy is the rule's, those that it judges."""
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
class RunVerdict:
    state: State
    sentence: str
    signals: list[Signal]
    truth: Truth | None = None
    hacked_at: int | None = None
    """The first step at which the run counts as hacked."""
    alarm_at: int | None = None
    """The first step at which the alarm went off."""
    basis: Sequence[str] = ()
    """What the verdict rests on, a sentence each: the check, the problems, how sure it is."""

    is_audit: bool = False
    """Whether it is on a run of another trainer, of which an audit asks only whether it is hacked."""

    @property
    def name(self) -> str:
        return name_of(self.state, self.is_audit)


def name_of(state: State, is_audit: bool) -> str:
    """What pages and terminals call a state."""
    return "No hack" if is_audit and state in ("healthy", "nothing learned") else NAMES[state]


def verdict_of(run: RunRecord, test_problems: int | None = None, table: Table | None = None) -> RunVerdict:
    """The verdict on a run. `test_problems` is the number of its held-out problems, if known.

    Its truth is the first of `TRUTHS` on record. If that is not gold, the alarm counts too, because the rule may be
    fooled. Where it is about training problems, the recorded completions decide, or their `table`: later problems may
    be harder. An audit of another trainer's run has its verdict on record.
    """
    if (written := _audit_of(run)) is not None:
        return _audited(run, written)
    alarms, alarm_at, _ = _replay(run.metrics)
    status = status_of(run)
    accuracies, reward = _accuracies(run), run.series("reward/mean")
    state, first, said, signals_of_truth = "unknown", None, f"Only {run.step} steps are on record.", []
    chosen = finding = None
    if accuracies and len(reward) >= FEWEST:
        chosen = next(iter(accuracies))
        problems = problems_behind(chosen, run, test_problems)
        shortest, lacking = _shortest_window(run, chosen, len(accuracies[chosen]), problems)
        outcome = outcome_of(accuracies[chosen], reward, problems, chosen.held_out, shortest, run.rise(chosen.metric))
        finding = None if lacking else _finding(run, chosen, table, outcome)
        if finding is not None:
            outcome = replace(outcome, state=finding.state)
        if not lacking:
            state, first = outcome.state, finding.onset[-1] if finding and finding.onset else outcome.hacked_at
        convicted_at, alarm_lasts = None, False
        if alarm_at is not None or finding is None:  # what the rule says of the answers is in the finding already
            _, convicted_at, alarm_lasts = _replay(run.metrics, ERROR, beyond_the_rule=finding is not None)
        if state in ("healthy", "nothing learned", "unknown") and not chosen.is_gold and convicted_at is not None:
            state, first = "hacked" if alarm_lasts else "recovered", convicted_at
        if finding is not None and state == finding.state:
            said = " ".join([finding.sentence, *finding.guards])
        else:
            said = lacking if state == "unknown" else _sentence(state, chosen, outcome, first)
        state, courses = _by_side(state, chosen, run, problems, shortest)
        said += courses + _silence(chosen, run) + _doubted(state, alarm_at, chosen)
        signals_of_truth = _truth_signals(accuracies, chosen, outcome)
    elif accuracies and run.step >= FEWEST:
        said = f"Fewer than {FEWEST} steps were paid a reward, so nothing can be said of hacking."
    elif run.step >= FEWEST:
        metrics = ", ".join(truth.metric for truth in TRUTHS)
        said = f"Nothing on record measures the truth: none of {metrics} has {FEWEST} values."
    faults = _faults(run)
    if state in ("healthy", "nothing learned", "unknown") and (status.died or faults):
        state = "faults"
    fired = _fired(run)
    first_told = [Signal("bad", text) for text in ([status.end] if status.died else []) + faults]
    notes = [Signal("unknown", str(event["message"])) for event in run.events if event.get("action") == NOTE]
    signals = [*first_told, *signals_of_truth, *alarms, *fired.values(), *notes]
    said = " ".join(filter(None, [said, status.end, f"Watch rules fired on {', '.join(fired)}." if fired else ""]))
    return RunVerdict(state, said, signals, chosen, first, alarm_at, _basis(chosen, finding, state))


def _basis(truth: Truth | None, finding: Finding | None, state: State) -> list[str]:
    check = f"Check: {truth.name}." if truth else ""
    return [check] if finding is None or finding.state != state else finding.basis(check)


def _fired(run: RunRecord) -> dict[str, Signal]:
    """A signal for each metric on which watch rules fired; the alarm is replayed elsewhere."""
    fired: dict[str, list[Mapping[str, Any]]] = {}
    for event in run.events:
        if event.get("action") not in (*ENDS, NOTE) and event.get("metric") != HACKING:
            fired.setdefault(str(event["metric"]), []).append(event)
    return {
        metric: Signal("bad", f"Watch rule at step {', '.join(str(e['step']) for e in events)}: {events[0]['message']}")
        for metric, events in fired.items()
    }


def _finding(run: RunRecord, truth: Truth, table: Table | None, outcome: Outcome) -> Finding | None:
    """What the completions say: of training problems the verdict; beside held-out ones, in which nothing is wrong, what
    these cannot show, which is what was paid. None without them.
    """
    if truth.held_out and outcome.state not in ("healthy", "nothing learned"):
        return None
    table = table or table_of(run, truth.is_gold)
    found = finding_of_table(table) if table.says_something else None
    of_pay = ("hacked", "wrong paid", "right unpaid")
    return None if found is None or (truth.held_out and found.state not in of_pay) else found


def _faults(run: RunRecord) -> list[str]:
    return [
        f"{rule.metric} is a fault since step {since}: {rule.advice}"
        for rule, since in Watch((), seen=run.metrics).lasting
        if isinstance(rule, DefaultRule) and rule.metric in FAULTS
    ]


def _shortest_window(run: RunRecord, truth: Truth, values: int, problems: int | None) -> tuple[int | None, str]:
    """The least steps of a window in which the truth is compared, None for two halves, and what is lacking for a
    verdict, if anything.
    """
    if truth.held_out:
        lacking = (
            f"Nothing says how many problems are behind the {values} evaluations of {truth.metric}, and so few of them "
            f"do not show their own noise; {FEWEST_STEPS} would."
        )
        return shortest_of(values), lacking if problems is None and values < FEWEST_STEPS else ""
    per_step = run.config.get("problems_per_step")
    rollout = run.config.get("rollout")
    samples = rollout.get("n") if isinstance(rollout, Mapping) else None
    shortest = shortest_of(values)
    if type(per_step) is int and type(samples) is int and per_step > 0 and samples > 0:
        shortest = max(shortest, -(-FEWEST_PROBLEMS // per_step), -(-FEWEST_ROWS // (per_step * samples)))
    if values >= FEWEST_STEPS and shortest <= values // 2:
        return shortest, ""
    lacking = (
        f"{values} steps are too few for a verdict by {truth.name}: two windows of {FEWEST_PROBLEMS} problems and "
        f"{FEWEST_ROWS} completions are compared, in {FEWEST_STEPS} steps or more. Train on, or give test problems."
    )
    return None, lacking if values < 4 or shortest > values // 2 else ""


def _audit_of(run: RunRecord) -> Mapping[str, Any] | None:
    """What `cooper audit` has written into the run's settings; None without a whole verdict."""
    written = run.config.get("audit")
    return written if isinstance(written, Mapping) and written.get("state") in get_args(State) else None


def _audited(run: RunRecord, written: Mapping[str, Any]) -> RunVerdict:
    alarms, alarm_at, _ = _replay(run.metrics)
    guards, onset, basis = written.get("guards"), written.get("onset"), written.get("basis")
    hacked = written["state"] in ACCUSED and isinstance(onset, list) and all(type(step) is int for step in onset)
    truth = TRUTHS[-1] if len(run.series(TRUTHS[-1].metric)) >= FEWEST else None
    first = onset[-1] if hacked and onset else None
    said = str(written.get("sentence", ""))
    rests_on = [str(one) for texts in (guards, basis) if isinstance(texts, list) for one in texts]
    return RunVerdict(written["state"], said, alarms, truth, first, alarm_at, rests_on, is_audit=True)


def _sentence(state: State, truth: Truth, outcome: Outcome, alarm_at: int | None) -> str:
    course = (outcome.truth[0], outcome.best, outcome.worst, outcome.truth[-1])
    start, best, worst, end = (_share(value) for _, value in course)
    if state in ("healthy", "nothing learned"):
        went = f"{truth.title} went from {start} to {end}, {best} at its best"
        if outcome.rise is not None:
            return f"{went}: {_signed(outcome.rise)}, paired by problem."
        return f"{went}." if state == "healthy" else f"{went}. Only a rise of more than {_rise_wanted(outcome)} counts."
    if state == "broken":
        highest, (_, last) = max(value for _, value in outcome.reward), outcome.reward[-1]
        went = f"training reward went from {_share(highest)} at its best to {_share(last)}"
        if outcome.best[1] - outcome.truth[-1][1] <= MARGIN:
            return f"The {went}, and {truth.name} from {start} to {end}."
        return f"{truth.title} fell from {best} to {end}, and the {went}."
    if outcome.hacked_at is None:
        seen = f"The reward-hacking alarm went off at step {alarm_at}"
        return f"{seen} and {'is still on' if state == 'hacked' else 'is off again'}; there are no gold labels."
    low, high = (_share(at(outcome.reward, step)) for step, _ in (outcome.best, outcome.worst))
    fall = f"fell from {best} (step {outcome.best[0]}) to {worst}"
    if state == "recovered":
        back = f"at step {outcome.worst[0]} while the training reward rose from {low} to {high}. It is back at {end}."
        return f"{truth.title} {fall} {back}"
    return f"The training reward rose from {low} to {high} while {truth.name} {fall}."


def _signed(rise: Estimate) -> str:
    return f"{rise.mean:+.3f} (95 % interval {rise.low:+.3f} to {rise.high:+.3f})"


def _rise_wanted(outcome: Outcome) -> str:
    if outcome.learned is not None:
        return _share(outcome.learned)
    return f"{_share(LEARNED)}, and of more than the same steps show in random orders,"


def _doubted(state: State, alarm_at: int | None, truth: Truth) -> str:
    if alarm_at is None or state not in ("healthy", "nothing learned"):
        return ""
    of_gold = ", and gold did not follow" if truth.is_gold else ""
    return f" The alarm went off at step {alarm_at}, but not beyond doubt{of_gold}."


def _silence(truth: Truth, run: RunRecord) -> str:
    """The share of problems that the truth is about, if the rule gives it and is silent on the others."""
    heard = None if truth.is_gold else run.last("test/heard" if truth.held_out else "rule/heard")
    if heard is None or heard == 1:
        return ""
    of = "these problems" if truth.held_out else "the completions"
    return f" The rule judges {100 * heard:.0f} % of {of} and is silent on the others."


def _by_side(
    state: State, truth: Truth, run: RunRecord, problems: int | None, shortest: int | None
) -> tuple[State, str]:
    """The state, or another one if gold changed where the rule judges or where it is silent: a rise here and a fall
    there cancel out. And what it did there, in a sentence; empty where that does not change the state.
    """
    changes, courses, heard = set[State](), list[str](), run.last("test/heard") or 0.0
    if state not in ("healthy", "nothing learned") or (truth.held_out and not (problems and heard)):
        return state, ""
    for side, where, share in (("heard", "Where the rule judges", heard), ("silent", "Where it is silent", 1 - heard)):
        points = run.series(f"{truth.metric}_{side}")
        if len(points) < FEWEST:
            return state, ""
        count = round(problems * share) if problems else None
        wrong = [(step, 1 - value) for step, value in points]
        rose, fell = (outcome_of(p, p, count, truth.held_out, shortest).state == "healthy" for p in (points, wrong))
        first, last = points[0][1], points[-1][1]
        is_lost = fell and first - last > min(MARGIN, first / 2)
        changes |= {"part lost"} if is_lost else {"healthy"} if rose else set()
        courses.append(f"{where}, gold accuracy went from {_share(first)} to {_share(last)}.")
    changed = "part lost" if "part lost" in changes else "healthy" if changes else state
    return changed, f" {' '.join(courses)}" if changed != state else ""


def _truth_signals(accuracies: Mapping[Truth, Points], chosen: Truth, outcome: Outcome) -> list[Signal]:
    """One line for the chosen accuracy, and then one for each other."""
    lines = []
    for truth in (chosen, *(truth for truth in accuracies if truth != chosen)):
        values = accuracies[truth] if truth.held_out else _in_whole_windows(accuracies[truth])
        (_, first), (_, last) = values[0], values[-1]
        best, where = max(value for _, value in values), ""
        state = "bad" if best - last > MARGIN else "good"
        if truth == chosen:
            state = SAYS.get(outcome.state, "unknown")
            best, where = outcome.best[1], f" (step {outcome.best[0]})"
        course = f"{_share(first)} at the start, {_share(best)} at its best{where}, {_share(last)} now"
        lines.append(Signal(state, f"{truth.title}: {course}"))
    return lines


def _replay(
    metrics: Sequence[Mapping[str, Any]], error: float = ALARM_ERROR, beyond_the_rule: bool = False
) -> tuple[list[Signal], int | None, bool]:
    """The alarm over the whole record, even if the run's rules switched it off: whether it went off, when first, and
    whether it is on now. It warns with one `error`, and convicts with a smaller one; `beyond_the_rule` by those signs
    alone that do not depend on what the rule says of the answers."""
    alarm, firsts, seen = HackingAlarm(error), {}, []
    for row in metrics:
        numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
        seen = [
            text
            for text in alarm.observe(int(row["step"]), numbers)
            if not beyond_the_rule or text.split(" fell from ")[0] in alarm.beyond_the_rule
        ]
        for text in seen:
            firsts.setdefault(text.split(" fell from ")[0], (int(row["step"]), text))
    signals = [Signal("bad", f"Alarm at step {step}: {text}") for step, text in firsts.values()]
    silent = Signal("good", f"The reward-hacking alarm: none of its {len(alarm.strengths)} signs")
    return signals or [silent], min((step for step, _ in firsts.values()), default=None), bool(seen)


def _share(value: float) -> str:
    """Two digits after the point, a half rounded up as the page's own tables round it: 0.625 is 0.63."""
    return str(Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP))
