"""Several runs side by side: their figures with intervals, means over seeds, and where their settings differ."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cooper_rl.evaluation.accuracy import mean_interval, wilson_interval
from cooper_rl.observe.report.completions import Sample
from cooper_rl.observe.report.run_folder import RunFolder
from cooper_rl.observe.report.verdict import Truth, Verdict

OWN = ("name", "output_dir", "seed")
"""Settings in which two runs of one design may differ."""
LAST = 5
"""Steps over which the reward at the start and at the end is averaged."""


def held_out_problems(run: RunFolder) -> int | None:
    """The number of held-out problems, if it is on record."""
    for session in reversed(run.sessions):
        if isinstance(found := session.get("test_problems"), int) and found > 0:
            return found
    return None


def figures(run: RunFolder, verdict: Verdict, sample: Sample) -> dict[str, Any]:
    """The run's row of the comparison. `low` and `high` are the 95 % interval of the accuracy at the end, or null.

    On held-out problems it is Wilson's, with the number of problems as that of trials, which is cautious where each is
    sampled several times. On training problems the end is the mean of the last steps, and the interval is Wilson's over
    their problems.
    """
    row: dict[str, Any] = {"verdict": verdict.state, "steps": run.step, "planned": run.steps}
    row["alarm"] = verdict.alarm_at
    reward = [value for _, value in run.series("reward/mean")]
    if reward:
        row |= {"reward_start": _mean(reward[:LAST]), "reward_end": _mean(reward[-LAST:])}
    if verdict.truth is not None:
        values = [value for _, value in run.series(verdict.truth.metric)]
        end = values[-1] if verdict.truth.held_out else _mean(values[-LAST:])
        row |= {"truth": verdict.truth.name, "start": values[0], "end": end, "best": max(values)}
        row |= dict(zip(("low", "high"), _interval(run, verdict.truth, end, sample), strict=True))
    return row


def over_seeds(runs: Sequence[RunFolder], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For every group of runs that differ in nothing but their seed: mean and 95 % interval of the end, by Student's t.

    Empty if no two runs are of one design.
    """
    groups: dict[str, list[int]] = {}
    for index, run in enumerate(runs):
        design = {key: value for key, value in flat(run.config).items() if key not in OWN}
        groups.setdefault(json.dumps(design, sort_keys=True, default=str), []).append(index)
    found = []
    for members in groups.values():
        ends = [rows[i]["end"] for i in members if "end" in rows[i]]
        if len(members) > 1 and len(ends) > 1:
            mean, low, high = mean_interval(ends)
            labels = [runs[i].label for i in members]
            found.append({"runs": labels, "mean": mean, "low": low, "high": high, "truth": rows[members[0]]["truth"]})
    return found


def config_differences(runs: Sequence[RunFolder]) -> list[dict[str, Any]]:
    """Every setting in which the runs differ, with its value in each; null where a run does not have it."""
    settings = [flat(run.config) for run in runs]
    keys = dict.fromkeys(key for one in settings for key in one)
    rows = [{"key": key, "values": [one.get(key) for one in settings]} for key in keys if key not in ("name",)]
    return [row for row in rows if any(value != row["values"][0] for value in row["values"][1:])]


def flat(settings: Mapping[str, Any]) -> dict[str, str]:
    """Nested settings as dotted keys with their values as text."""
    return dict(_flat(settings, ""))


def _flat(value: Any, prefix: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for index, inner in enumerate(value):
            yield from _flat(inner, f"{prefix}[{index}]")
    else:
        yield prefix, value if isinstance(value, str) else json.dumps(value, default=str)


def _interval(run: RunFolder, truth: Truth, end: float, sample: Sample) -> tuple[float | None, float | None]:
    if truth.held_out:
        problems = held_out_problems(run)
        return (None, None) if problems is None or not 0 <= end <= 1 else wilson_interval(end, problems)
    means = sample.means.get("gold" if truth.is_gold else "rule", [])
    return (None, None) if not means else wilson_interval(_mean(means), len(means))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
