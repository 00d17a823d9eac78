"""Reads what a run has written to its folder so far, without torch, while the run may still be writing."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import yaml

from cooper_rl.errors import InputError

TIMES = ("time/step", "time/evaluate", "time/held_out_monitor")
"""The metrics that add up to the seconds of a step."""
ACCURACIES = ("test/gold_avg", "test/rule_avg", "gold/accuracy", "rule/accuracy")
"""The metrics that say how good the policy is, best first."""


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

    @property
    def step(self) -> int:
        """The last recorded step."""
        return int(self.metrics[-1]["step"]) if self.metrics else 0

    @property
    def steps(self) -> int:
        """The steps of the whole run; 0 if unknown."""
        steps = self.config.get("steps")
        return steps if isinstance(steps, int) else 0

    def series(self, name: str) -> list[tuple[int, float]]:
        """Step and value of every finite value of a metric."""
        return [(int(row["step"]), float(row[name])) for row in self.metrics if _is_number(row.get(name))]

    def last(self, name: str) -> float | None:
        """The last finite value of a metric."""
        values = self.series(name)
        return values[-1][1] if values else None

    @property
    def accuracy(self) -> tuple[str, float] | None:
        """Name and last value of the best measure of the policy that the run has; see `ACCURACIES`."""
        found = ((name, self.last(name)) for name in ACCURACIES)
        return next(((name, value) for name, value in found if value is not None), None)

    @cached_property
    def seconds(self) -> list[float]:
        """The seconds of every recorded step, evaluations included."""
        return [sum(row.get(name) or 0.0 for name in TIMES) for row in self.metrics]

    @cached_property
    def sessions(self) -> list[dict[str, Any]]:
        """The lines of `sessions.jsonl`: one for each start of the run."""
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
        for step, row in self._rows("rollouts", steps):
            problem = {name: value for name, value in row.items() if name != "completions"}
            for completion in row["completions"]:
                yield {"step": step, **problem, **completion}

    def pairs(self, steps: Sequence[int] | None = None) -> Iterator[dict[str, Any]]:
        """Every recorded pair with its `step`. `steps` leaves out all others."""
        for step, row in self._rows("pairs", steps):
            yield {"step": step, **row}

    def files(self, folder: Literal["rollouts", "pairs"]) -> list[Path]:
        """The files of completions or of pairs, by step; the step is a file's stem."""
        return sorted((self.directory / folder).glob("*.jsonl"))

    @property
    def rollout_steps(self) -> list[int]:
        """The steps whose completions are on disk."""
        return [int(path.stem) for path in self.files("rollouts")]

    def _rows(
        self, folder: Literal["rollouts", "pairs"], steps: Sequence[int] | None
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        for path in self.files(folder):
            if steps is None or int(path.stem) in steps:
                for row in read_lines(path):
                    yield int(path.stem), row


def is_run(directory: Path) -> bool:
    """Whether the folder is that of a run."""
    return (directory / "config.yaml").is_file() and (directory / "rollouts").is_dir()


def read_record(directory: Path) -> RunRecord:
    """Read a run's folder. Raises InputError if it holds no run."""
    if not is_run(directory):
        raise InputError(f"{directory}: holds no run (no config.yaml with rollouts/ beside it); see `cooper runs`")
    text = (directory / "config.yaml").read_text(encoding="utf-8")
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{directory / 'config.yaml'}: {error}") from error
    return RunRecord(directory, config or {}, read_metrics(directory), read_events(directory))


def find_runs(folder: Path) -> list[Path]:
    """The folders of all runs in `folder`, itself included, by name. Raises InputError if it does not exist."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name the folder that holds your runs")
    return sorted(path.parent for path in folder.rglob("config.yaml") if is_run(path.parent))


def read_metrics(directory: Path) -> list[dict[str, Any]]:
    """The lines of a run's `metrics.jsonl`. An incomplete last line is left out."""
    return read_lines(directory / "metrics.jsonl")


def read_events(directory: Path) -> list[dict[str, Any]]:
    """The lines of a run's `events.jsonl`. An incomplete last line is left out."""
    return read_lines(directory / "events.jsonl")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a JSON Lines file; none if it does not exist. An incomplete last line is left out.

    Raises InputError with file and line for a line that is not JSON.
    """
    try:
        data = path.read_bytes()  # bytes, because a line that is being written may end inside a character
    except FileNotFoundError:  # also if a resumed run deletes it just now
        return []
    rows = []
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            rows += [json.loads(line)] if line else []
        except ValueError as error:
            raise InputError(f"{path}:{number}: not JSON: {error}; delete the line") from error
    return rows


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
