"""Reads what a run has written so far, without torch, while it may still be writing, and says where the run stands."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import yaml

from cooper_rl.errors import InputError
from cooper_rl.persist.folder_lock import holder_of

ACCURACIES = ("test/gold_avg", "test/rule_avg", "gold/accuracy", "rule/accuracy")
"""The metrics that say how good the policy is, best first."""
State = Literal["running", "finished", "stopped", "interrupted"]


@dataclass(frozen=True)
class RunRecord:
    """The files of a run's folder. What is not there is empty."""

    directory: Path
    config: Mapping[str, Any]
    """Every setting."""
    metrics: Sequence[Mapping[str, Any]]
    """The lines of `metrics.jsonl`."""
    events: Sequence[Mapping[str, Any]]
    """The lines of `events.jsonl`."""
    label: str = ""
    """What a report calls the run."""
    config_text: str = ""
    """`config.yaml` as it is, for a report."""

    @property
    def step(self) -> int:
        return int(self.metrics[-1]["step"]) if self.metrics else 0

    @property
    def steps(self) -> int:
        """The steps of the whole run; 0 if unknown."""
        return steps if isinstance(steps := self.config.get("steps"), int) else 0

    def series(self, name: str) -> list[tuple[int, float]]:
        """Step and value of every finite value of a metric."""
        rows = [(int(row["step"]), row[name]) for row in self.metrics if type(row.get(name)) in (int, float)]
        return [(step, float(value)) for step, value in rows if math.isfinite(value)]

    def values(self, name: str) -> list[float]:
        return [value for _, value in self.series(name)]

    def last(self, name: str) -> float | None:
        return next(reversed(self.values(name)), None)

    @property
    def accuracy(self) -> tuple[str, float] | None:
        """Name and last value of the best measure of the policy that the run has; see `ACCURACIES`."""
        found = ((name, self.last(name)) for name in ACCURACIES)
        return next(((name, value) for name, value in found if value is not None), None)

    @cached_property
    def seconds(self) -> list[float]:
        """The seconds of every recorded step, evaluations included."""
        times = ("time/step", "time/evaluate", "time/held_out_monitor")
        return [sum(row.get(name) or 0.0 for name in times) for row in self.metrics]

    @cached_property
    def sessions(self) -> list[dict[str, Any]]:
        """One for each start of the run."""
        return read_lines(self.directory / "sessions.jsonl")

    @cached_property
    def started(self) -> datetime | None:
        """When the run was started for the first time: from `sessions.jsonl` or, without it, the first rollouts."""
        if self.sessions and "started" in self.sessions[0]:
            return datetime.fromisoformat(self.sessions[0]["started"])
        first = self.directory / "rollouts" / "000001.jsonl"
        if not first.exists():
            return None
        took = sum(self.seconds[:2]) if self.metrics and self.metrics[0]["step"] == 0 else sum(self.seconds[:1])
        return datetime.fromtimestamp(first.stat().st_mtime - took).astimezone()

    @property
    def checkpoints(self) -> list[int]:
        """The steps of the checkpoints, oldest first."""
        return sorted(int(path.name) for path in (self.directory / "checkpoints").glob("*") if path.name.isdigit())

    def rollouts(self, steps: Sequence[int] | None = None) -> Iterator[dict[str, Any]]:
        """Every recorded completion with its `step` and problem. `steps` leaves out all others."""
        for path in self.files("rollouts"):
            for row in read_lines(path) if steps is None or int(path.stem) in steps else []:
                problem = {name: value for name, value in row.items() if name != "completions"}
                yield from ({"step": int(path.stem), **problem, **completion} for completion in row["completions"])

    def pairs(self) -> Iterator[dict[str, Any]]:
        """Every recorded pair with its `step`."""
        return ({"step": int(path.stem), **row} for path in self.files("pairs") for row in read_lines(path))

    def files(self, folder: Literal["rollouts", "pairs"]) -> list[Path]:
        """The files of completions or of pairs, by step; the step is a file's stem."""
        return sorted((self.directory / folder).glob("*.jsonl"))


def is_run(directory: Path) -> bool:
    return (directory / "config.yaml").is_file() and (directory / "rollouts").is_dir()


def read_record(directory: Path) -> RunRecord:
    """Read a run's folder. Raises InputError if it holds no run, or a `config.yaml` that is not YAML."""
    if not is_run(directory):
        raise InputError(f"{directory}: holds no run (no config.yaml with rollouts/ beside it); see `cooper runs`")
    record = read_run(directory)
    try:
        return record if record.config else replace(record, config=yaml.safe_load(record.config_text) or {})
    except yaml.YAMLError as error:
        raise InputError(f"{directory / 'config.yaml'}: {error}") from error


def find_runs(folder: Path) -> list[Path]:
    """The folders of all runs in `folder`, itself included, by name. Raises InputError if it does not exist."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name the folder that holds your runs")
    return sorted(path.parent for path in folder.rglob("config.yaml") if is_run(path.parent))


def read_run(directory: Path, label: str | None = None) -> RunRecord:
    """Read a run's folder, a `config` that cannot be read as empty. Raises InputError if there is no run in it."""
    if not _has_record(directory):
        raise InputError(f"{directory}: no run here (neither config.yaml nor metrics.jsonl); name a run's own folder")
    config = directory / "config.yaml"
    text = config.read_text(encoding="utf-8", errors="replace") if config.exists() else ""
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):  # somebody edited it; the page shows the text as it is
        found = {}
    settings = found if isinstance(found, dict) else {}
    metrics = [row for row in read_metrics(directory) if isinstance(row, dict) and "step" in row]
    return RunRecord(directory, settings, metrics, read_events(directory), label or directory.resolve().name, text)


def runs_in(directory: Path) -> list[Path]:
    """The folder itself if it holds a run, else those of the runs in it. Raises InputError if there is none."""
    if _has_record(directory):
        return [directory]
    if not directory.is_dir():
        raise InputError(f"{directory}: no such folder; name a run's folder, such as runs/demo/cooper")
    found = sorted(path for path in directory.iterdir() if path.is_dir() and _has_record(path))
    if not found:
        raise InputError(f"{directory}: neither a run (config.yaml, metrics.jsonl) nor a folder of runs")
    return found


def read_runs(directories: Sequence[Path], labels: Mapping[Path, str] | None = None) -> list[RunRecord]:
    """Read several runs for a report. Runs of one name are told apart by as much of their path as it takes."""
    if not directories:
        raise InputError("no run to report on; name at least one run's folder")
    runs = [read_run(directory, (labels or {}).get(directory)) for directory in directories]
    if len({run.label for run in runs}) == len(runs):
        return runs
    paths = [run.directory.resolve().parts for run in runs]
    length = next((n for n in range(1, 50) if len({path[-n:] for path in paths}) == len(paths)), 50)
    return [replace(run, label="/".join(path[-length:])) for run, path in zip(runs, paths, strict=True)]


def read_metrics(directory: Path, last: int | None = None) -> list[dict[str, Any]]:
    return read_lines(directory / "metrics.jsonl", last)


def read_events(directory: Path) -> list[dict[str, Any]]:
    return read_lines(directory / "events.jsonl")


def read_lines(path: Path, last: int | None = None) -> list[dict[str, Any]]:
    """The whole lines of a JSON Lines file, or the `last` of them; none without it. Raises InputError at a line that
    is not JSON."""
    try:
        data = path.read_bytes()  # bytes, because a line that is being written may end inside a character
    except FileNotFoundError:  # also if a resumed run deletes it just now
        return []
    rows, lines = [], [*enumerate(data.split(b"\n")[:-1], start=1)]
    for number, line in lines if last is None else lines[-last:]:
        try:
            rows += [json.loads(line)] if line else []
        except ValueError as error:
            raise InputError(f"{path}:{number}: not JSON: {error}; delete the line") from error
    return rows


def is_right(completion: Mapping[str, Any]) -> bool | None:
    """Whether gold calls a recorded completion right or, where gold is unknown, the rule.

    None if neither has judged it: the rule is silent, or its time was not enough. `unparsed` is a no of the rule.
    """
    if isinstance(gold := completion.get("gold"), bool):
        return gold
    verdict = completion.get("verdict")
    return None if verdict in ("silent", "timeout", None) else verdict == "correct"


@dataclass(frozen=True)
class RunStatus:
    state: State
    """`running`: a process holds the folder. `stopped`: by a watch rule. `interrupted`: by anything else, or killed."""
    detail: str
    """The process that trains, the rule that stopped the run, or where a resumed run would go on."""
    died: bool
    """Whether an error or a kill ended it, and nobody's wish."""
    end: str
    """A sentence about an end before the last step; empty after an interrupt that left a checkpoint."""
    seconds_per_step: float | None
    """Mean of the last steps, evaluations included."""
    seconds_left: float | None
    """Estimate for a run that is running."""
    tokens_per_second: float | None
    """Sampled tokens by the time of the last steps."""


def status_of(run: RunRecord) -> RunStatus:
    state, detail, died, end = _state(run)
    recent = [(row, seconds) for row, seconds in zip(run.metrics, run.seconds, strict=True) if "time/step" in row][-20:]
    pace = math.fsum(seconds for _, seconds in recent) / len(recent) if recent else None
    tokens = math.fsum(row.get("rollout/tokens") or 0.0 for row, _ in recent)
    in_steps = math.fsum(row["time/step"] for row, _ in recent)
    left = pace * max(run.steps - run.step, 0) if pace is not None and state == "running" else None
    return RunStatus(state, detail, died, end, pace, left, tokens / in_steps if in_steps > 0 else None)


def _state(run: RunRecord) -> tuple[State, str, bool, str]:
    if (holder := holder_of(run.directory)) is not None:
        return "running", holder, False, ""
    last = run.events[-1] if run.events else {}
    action = last.get("action") if last and last["step"] == run.step else None
    end = f"The run died after step {run.step}: {last['message']}." if action == "died" else ""
    if action in ("stop", "rollback") and "back_to" not in last:
        end = f"A watch rule on {last['metric']} stopped it at step {run.step}."
        return "stopped", str(last["message"]), action == "rollback", end
    if run.steps and run.step >= run.steps:
        return "finished", "", bool(end), end
    goes_on = f"--resume goes on after step {max(run.checkpoints, default=0)}"
    if end:
        return "interrupted", f"died: {last['message']}; {goes_on}", True, end
    # An interrupted run writes a checkpoint of its last step.
    if run.sessions and run.step not in run.checkpoints:
        end = f"The run ended after step {run.step} of {run.steps or '?'} without a word: killed, or out of memory."
    return "interrupted", goes_on, bool(end), end


def _has_record(directory: Path) -> bool:
    return any((directory / name).exists() for name in ("config.yaml", "metrics.jsonl"))


def flat(value: Any, item: str = ".{}", name: str = "") -> dict[str, str]:
    """Nested settings under dotted names, as text. `item` is the form of a place in a list that holds settings."""
    if isinstance(value, dict) and value:
        inner = {f"{name}.{key}" if name else str(key): one for key, one in value.items()}
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        inner = {name + item.format(place): one for place, one in enumerate(value)}
    else:
        return {name: value if isinstance(value, str) else json.dumps(value, default=str)}
    return {key: text for name, one in inner.items() for key, text in flat(one, item, name).items()}
