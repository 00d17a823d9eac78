"""The tables of a report: what a run is, what it takes to run it again, and several runs side by side."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from cooper_rl.evaluation.accuracy import mean_interval, wilson_interval
from cooper_rl.observe.hacking_alarm import WINDOW
from cooper_rl.observe.report_completions import Sample
from cooper_rl.observe.run_record import RunRecord, flat, status_of
from cooper_rl.observe.verdict import Verdict

OWN = ("name", "output_dir", "seed")
"""Settings in which two runs of one design may differ."""


def facts(run: RunRecord) -> dict[str, str]:
    """The run in a few lines, each with its name."""
    models = [_mapping(model) for model in _mapping(run.config.get("reward_models")).values()]
    peaks = {"at most": _most(run, "memory/peak"), "on a GPU": _most(run, *_names(run, "gpu_memory/"))}
    status = status_of(run)
    kind, preset = str(run.config.get("kind") or "custom"), run.config.get("preset")
    found = {
        "run": str(run.directory),
        "kind": f"{kind}, preset {preset}" if preset and kind in ("cooper", "hybrid") else kind,
        "policy": _model(run.config.get("policy")),
        "reward model": "; ".join(f"{_model(one)}, {'learns' if one.get('learns') else 'frozen'}" for one in models),
        "trained on": _problems(_mapping(run.config.get("problems"))),
        "tested on": _problems(_mapping(run.config.get("test_problems"))),
        "steps": f"{run.step} of {run.steps or 'an unknown number'}, {status.state}",
        "time": _time(run, status.seconds_left),
        "memory": ", ".join(f"{most:,} MiB {where}" for where, most in peaks.items() if most is not None),
        "seed": str(run.config.get("seed", "")),
    }
    return {name: value for name, value in found.items() if value}


def provenance(run: RunRecord) -> dict[str, str]:
    revisions = "cooper_version|cooper_revision|working_folder_revision"
    noted = re.findall(f"^# ({revisions}): (.*)$", run.config_text, re.MULTILINE)
    found = {name.replace("_", " "): value for name, value in noted}
    for session in run.sessions:
        after = session.get("after_step")
        when = f"started {session.get('started', '')}" + (f", after step {after}" if after else "")
        program, *arguments = [str(part) for part in session.get("command") or [""]]
        found[when] = shlex.join([Path(program).name, *arguments])
    for last in run.sessions[-1:]:
        shown = [name for name in ("python", "torch", "transformers", "numpy", "system") if name in last]
        found["with"] = ", ".join(last[name] if name == "system" else f"{name} {last[name]}" for name in shown)
    if run.config_text:
        found["again"] = f"cooper train {shlex.quote(str(run.directory / 'config.yaml'))} name=again"
    return found


def learns(run: RunRecord) -> bool:
    return any(_mapping(model).get("learns") for model in _mapping(run.config.get("reward_models")).values())


def stages(run: RunRecord) -> list[dict[str, Any]]:
    """Every part of a step, the longest first, with its seconds in all steps and the most MiB of any or None."""
    seconds = {name.removeprefix("time/"): sum(run.values(name)) for name in _names(run, "time/")}
    return [
        {"name": "whole steps" if part == "step" else part.replace("_", " "), "seconds": seconds[part]}
        | {kind: _most(run, f"{kind}/{'peak' if part == 'step' else part}") for kind in ("memory", "gpu_memory")}
        for part in sorted(seconds, key=lambda part: -seconds[part])
    ]


def _names(run: RunRecord, prefix: str) -> list[str]:
    return [*dict.fromkeys(name for row in run.metrics for name in row if name.startswith(prefix))]


def _most(run: RunRecord, *names: str) -> int | None:
    return max((round(value) for name in names for value in run.values(name)), default=None)


def _time(run: RunRecord, left: float | None) -> str:
    if not (steps := run.values("time/step")):
        return ""
    total = f"{timedelta(seconds=round(sum(run.seconds)))} in steps and evaluations"
    to_go = "" if left is None else f", about {timedelta(seconds=round(left))} to go"
    return f"{total}, {_mean(steps):.3g} s a step{to_go}"


def _mapping(settings: Any) -> Mapping[str, Any]:
    """The settings of a part; none where somebody wrote something else."""
    return settings if isinstance(settings, Mapping) else {}


def _model(settings: Any) -> str:
    """A model's folder or hub name; of a long path the end."""
    name = str(_mapping(settings).get("model") or "")
    parts = name.split("/")
    return name if len(parts) <= 4 else "…/" + "/".join(parts[-3:])


def _problems(settings: Mapping[str, Any]) -> str:
    details = [f"{name} {settings[name]}" for name in ("split", "subset", "limit") if settings.get(name) is not None]
    return ", ".join([str(settings.get("source") or ""), *details])


def held_out_problems(run: RunRecord) -> int | None:
    """The number of held-out problems, if it is on record."""
    counts = [session.get("test_problems") for session in reversed(run.sessions)]
    return next((count for count in counts if isinstance(count, int) and count > 0), None)


def figures(run: RunRecord, verdict: Verdict, sample: Sample) -> dict[str, Any]:
    """The run's row of the comparison. `low` and `high` are the 95 % interval of the accuracy at the end, or null.

    It is Wilson's. The trials are the held-out problems, which is cautious where each is sampled several times, or else
    the training problems of the last steps, whose mean is then the end.
    """
    row: dict[str, Any] = {"verdict": verdict.state, "steps": run.step, "planned": run.steps, "alarm": verdict.alarm_at}
    if reward := run.values("reward/mean"):
        row |= {"reward_start": _mean(reward[:WINDOW]), "reward_end": _mean(reward[-WINDOW:])}
    if (truth := verdict.truth) is None:
        return row
    values = run.values(truth.metric)
    end = values[-1] if truth.held_out else _mean(values[-WINDOW:])
    low = high = None
    if truth.held_out:
        if (problems := held_out_problems(run)) is not None and 0 <= end <= 1:
            low, high = wilson_interval(end, problems)
    elif means := sample.means.get("gold" if truth.is_gold else "rule"):
        low, high = wilson_interval(_mean(means), len(means))
    return row | {"truth": truth.name, "start": values[0], "end": end, "best": max(values), "low": low, "high": high}


def over_seeds(runs: Sequence[RunRecord], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For runs that differ in nothing but their seed: mean and 95 % interval of the end, by Student's t."""
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
    keys = dict.fromkeys(key for one in settings for key in one if key != "name")
    rows = {key: [one.get(key) for one in settings] for key in keys}
    return [{"key": key, "values": values} for key, values in rows.items() if len(set(values)) > 1]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
