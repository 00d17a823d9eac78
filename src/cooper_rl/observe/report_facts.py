"""The tables of a report: what a run is, what it takes to run it again, and several runs side by side.

Several runs get their figures with intervals, means over seeds, and the settings in which they differ.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from cooper_rl.evaluation.accuracy import mean_interval, wilson_interval
from cooper_rl.observe.hacking_alarm import WINDOW
from cooper_rl.observe.report_completions import Sample
from cooper_rl.observe.run_record import RunRecord, flat, status_of
from cooper_rl.observe.verdict import Truth, Verdict

OWN = ("name", "output_dir", "seed")
"""Settings in which two runs of one design may differ."""


def facts(run: RunRecord) -> dict[str, str]:
    """The run in a few lines, each with its name."""
    found = {
        "run": str(run.directory),
        "kind": run.kind,
        "policy": _model(run.config.get("policy")),
        "reward model": "; ".join(_reward_models(run)),
        "trained on": _problems(run.config.get("problems")),
        "tested on": _problems(run.config.get("test_problems")),
        "steps": f"{run.step} of {run.steps or 'an unknown number'}, {status_of(run).state}",
        "time": _time(run),
        "memory": _memory(run),
        "seed": str(run.config.get("seed", "")),
    }
    return {name: value for name, value in found.items() if value}


def provenance(run: RunRecord) -> dict[str, str]:
    """Versions, machine and commands."""
    found = {name.replace("_", " "): value for name, value in run.revisions.items()}
    for session in run.sessions:
        after = session.get("after_step")
        when = f"started {session.get('started', '')}" + (f", after step {after}" if after else "")
        program, *arguments = [str(part) for part in session.get("command") or [""]]
        found[when] = shlex.join([Path(program).name, *arguments])
    if run.sessions:
        shown = ("python", "torch", "transformers", "numpy", "system")
        last = run.sessions[-1]
        found["with"] = ", ".join(
            f"{name} {last[name]}" if name != "system" else last[name] for name in shown if name in last
        )
    if run.config_text:
        found["again"] = f"cooper train {shlex.quote(str(run.directory / 'config.yaml'))} name=again"
    return found


def learns(run: RunRecord) -> bool:
    """Whether a reward model of the run learns."""
    models = run.config.get("reward_models")
    return isinstance(models, dict) and any(isinstance(m, dict) and m.get("learns") for m in models.values())


def stages(run: RunRecord) -> list[dict[str, Any]]:
    """Every measured part of a step with its seconds in all recorded steps together and the most memory of any step.

    The longest part stands first. Memory is in MiB, and None where it is not on record.
    """
    seconds = {name.removeprefix("time/"): sum(values) for name, values in _columns(run, "time/").items()}
    return [
        {"name": "whole steps" if part == "step" else part.replace("_", " "), "seconds": seconds[part]}
        | {kind: _most(run, f"{kind}/{'peak' if part == 'step' else part}") for kind in ("memory", "gpu_memory")}
        for part in sorted(seconds, key=lambda part: -seconds[part])
    ]


def _columns(run: RunRecord, prefix: str) -> dict[str, list[float]]:
    names = dict.fromkeys(name for row in run.metrics for name in row if name.startswith(prefix))
    return {name: [value for _, value in run.series(name)] for name in names}


def _most(run: RunRecord, name: str) -> int | None:
    return max((round(value) for _, value in run.series(name)), default=None)


def _time(run: RunRecord) -> str:
    total, left = sum(run.seconds), status_of(run).seconds_left
    steps = [value for _, value in run.series("time/step")]
    if not steps:
        return ""
    text = f"{timedelta(seconds=round(total))} in steps and evaluations, {sum(steps) / len(steps):.3g} s a step"
    if left is not None:
        text += f", about {timedelta(seconds=round(left))} to go"
    return text


def _memory(run: RunRecord) -> str:
    parts = [f"{peak:,} MiB at most" for peak in [_most(run, "memory/peak")] if peak is not None]
    on_gpu = [round(max(values)) for values in _columns(run, "gpu_memory/").values() if values]
    if on_gpu:
        parts.append(f"{max(on_gpu):,} MiB on a GPU")
    return ", ".join(parts)


def _reward_models(run: RunRecord) -> list[str]:
    models = run.config.get("reward_models")
    if not isinstance(models, dict):
        return []
    return [
        f"{_model(model)}{', learns' if isinstance(model, dict) and model.get('learns') else ', frozen'}"
        for model in models.values()
    ]


def _model(record: Any) -> str:
    """A model's folder or hub name; of a long path the end."""
    name = str(record.get("model") or "") if isinstance(record, Mapping) else ""
    parts = name.split("/")
    return name if len(parts) <= 4 else "…/" + "/".join(parts[-3:])


def _problems(record: Any) -> str:
    if not isinstance(record, Mapping):
        return ""
    details = [f"{name} {record[name]}" for name in ("split", "subset", "limit") if record.get(name) is not None]
    return ", ".join([str(record.get("source") or ""), *details])


def held_out_problems(run: RunRecord) -> int | None:
    """The number of held-out problems, if it is on record."""
    for session in reversed(run.sessions):
        if isinstance(found := session.get("test_problems"), int) and found > 0:
            return found
    return None


def figures(run: RunRecord, verdict: Verdict, sample: Sample) -> dict[str, Any]:
    """The run's row of the comparison. `low` and `high` are the 95 % interval of the accuracy at the end, or null.

    On held-out problems it is Wilson's, with the number of problems as that of trials, which is cautious where each is
    sampled several times. On training problems the end is the mean of the last steps, and the interval is Wilson's over
    their problems.
    """
    row: dict[str, Any] = {"verdict": verdict.state, "steps": run.step, "planned": run.steps}
    row["alarm"] = verdict.alarm_at
    reward = [value for _, value in run.series("reward/mean")]
    if reward:
        row |= {"reward_start": _mean(reward[:WINDOW]), "reward_end": _mean(reward[-WINDOW:])}
    if verdict.truth is not None:
        values = [value for _, value in run.series(verdict.truth.metric)]
        end = values[-1] if verdict.truth.held_out else _mean(values[-WINDOW:])
        row |= {"truth": verdict.truth.name, "start": values[0], "end": end, "best": max(values)}
        row |= dict(zip(("low", "high"), _interval(run, verdict.truth, end, sample), strict=True))
    return row


def over_seeds(runs: Sequence[RunRecord], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For every group of runs that differ in nothing but their seed: mean and 95 % interval of the end, by Student's t.

    Empty if no two runs are of one design.
    """
    groups: dict[str, list[int]] = {}
    for index, run in enumerate(runs):
        design = {key: value for key, value in flat(run.config, "[{}]").items() if key not in OWN}
        groups.setdefault(json.dumps(design, sort_keys=True, default=str), []).append(index)
    found = []
    for members in groups.values():
        ends = [rows[i]["end"] for i in members if "end" in rows[i]]
        if len(members) > 1 and len(ends) > 1:
            mean, low, high = mean_interval(ends)
            labels = [runs[i].label for i in members]
            found.append({"runs": labels, "mean": mean, "low": low, "high": high, "truth": rows[members[0]]["truth"]})
    return found


def config_differences(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Every setting in which the runs differ, with its value in each; null where a run does not have it."""
    settings = [flat(run.config, "[{}]") for run in runs]
    keys = dict.fromkeys(key for one in settings for key in one)
    rows = [{"key": key, "values": [one.get(key) for one in settings]} for key in keys if key not in ("name",)]
    return [row for row in rows if any(value != row["values"][0] for value in row["values"][1:])]


def _interval(run: RunRecord, truth: Truth, end: float, sample: Sample) -> tuple[float | None, float | None]:
    if truth.held_out:
        problems = held_out_problems(run)
        return (None, None) if problems is None or not 0 <= end <= 1 else wilson_interval(end, problems)
    means = sample.means.get("gold" if truth.is_gold else "rule", [])
    return (None, None) if not means else wilson_interval(_mean(means), len(means))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
