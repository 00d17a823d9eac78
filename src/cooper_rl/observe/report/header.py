"""What stands at the head of a run's report: kind, models, data, time, state; and what it takes to run it again."""

import shlex
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from cooper_rl.observe.report.run_folder import RunFolder
from cooper_rl.observe.run_status import status_of


def facts(run: RunFolder) -> dict[str, str]:
    """The run in a few lines, each with its name."""
    found = {
        "run": str(run.directory),
        "kind": run.kind,
        "policy": _model(run.config.get("policy")),
        "reward model": "; ".join(_reward_models(run)),
        "trained on": _problems(run.config.get("problems")),
        "tested on": _problems(run.config.get("test_problems")),
        "steps": f"{run.step} of {run.steps or 'an unknown number'}, {state(run)}",
        "time": _time(run),
        "memory": _memory(run),
        "seed": str(run.config.get("seed", "")),
    }
    return {name: value for name, value in found.items() if value}


def provenance(run: RunFolder) -> dict[str, str]:
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


def state(run: RunFolder) -> str:
    """Whether the run is running, finished, stopped by a watch rule, or interrupted, as `cooper runs` says it."""
    return status_of(run).state


def learns(run: RunFolder) -> bool:
    """Whether a reward model of the run learns."""
    models = run.config.get("reward_models")
    return isinstance(models, dict) and any(isinstance(m, dict) and m.get("learns") for m in models.values())


def stages(run: RunFolder) -> list[dict[str, Any]]:
    """Every measured part of a step with its seconds in all recorded steps together and the most memory of any step.

    The longest part stands first. Memory is in MiB, and None where it is not on record.
    """
    seconds = {name.removeprefix("time/"): sum(values) for name, values in _columns(run, "time/").items()}
    return [
        {"name": "whole steps" if part == "step" else part.replace("_", " "), "seconds": seconds[part]}
        | {kind: _most(run, f"{kind}/{'peak' if part == 'step' else part}") for kind in ("memory", "gpu_memory")}
        for part in sorted(seconds, key=lambda part: -seconds[part])
    ]


def _columns(run: RunFolder, prefix: str) -> dict[str, list[float]]:
    names = dict.fromkeys(name for row in run.metrics for name in row if name.startswith(prefix))
    return {name: [value for _, value in run.series(name)] for name in names}


def _most(run: RunFolder, name: str) -> int | None:
    return max((round(value) for _, value in run.series(name)), default=None)


def _time(run: RunFolder) -> str:
    total, left = sum(run.seconds), status_of(run).seconds_left
    steps = [value for _, value in run.series("time/step")]
    if not steps:
        return ""
    text = f"{timedelta(seconds=round(total))} in steps and evaluations, {sum(steps) / len(steps):.3g} s a step"
    if left is not None:
        text += f", about {timedelta(seconds=round(left))} to go"
    return text


def _memory(run: RunFolder) -> str:
    parts = [f"{peak:,} MiB at most" for peak in [_most(run, "memory/peak")] if peak is not None]
    on_gpu = [round(max(values)) for values in _columns(run, "gpu_memory/").values() if values]
    if on_gpu:
        parts.append(f"{max(on_gpu):,} MiB on a GPU")
    return ", ".join(parts)


def _reward_models(run: RunFolder) -> list[str]:
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
