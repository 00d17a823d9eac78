"""What a run has left on disk, read for its report: complete, still growing, or cut off anywhere."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

from cooper_rl.errors import InputError
from cooper_rl.observe.record import read_events, read_metrics

REVISIONS = ("cooper_version", "cooper_revision", "working_folder_revision")
"""The comments at the top of a run's `config.yaml`."""


@dataclass(frozen=True)
class RunFolder:
    """One run. A part that is not on disk is empty."""

    directory: Path
    label: str
    """What the report calls the run."""
    config_text: str
    config: Mapping[str, Any]
    """The settings; empty if `config.yaml` cannot be read."""
    metrics: Sequence[Mapping[str, Any]]
    events: Sequence[Mapping[str, Any]]
    sessions: Sequence[Mapping[str, Any]] = field(default=())
    """The lines of `sessions.jsonl`: one for each start of the run."""

    @property
    def last_step(self) -> int:
        """The last recorded step; 0 before the first one."""
        return int(self.metrics[-1]["step"]) if self.metrics else 0

    @property
    def revisions(self) -> dict[str, str]:
        """The versions of the code that `config.yaml` names."""
        found = {}
        for line in self.config_text.split("\n"):
            name, separator, value = line.removeprefix("# ").partition(": ")
            if line.startswith("# ") and separator and name in REVISIONS:
                found[name] = value
        return found

    @property
    def kind(self) -> str:
        """The kind of run, with the preset of a run that has stage 2."""
        kind, preset = str(self.config.get("kind") or "custom"), self.config.get("preset")
        return f"{kind}, preset {preset}" if preset and kind in ("cooper", "hybrid") else kind

    @property
    def planned_steps(self) -> int | None:
        """The number of steps that the run was asked for."""
        steps = self.config.get("steps")
        return steps if isinstance(steps, int) else None

    def series(self, metric: str) -> list[tuple[int, float]]:
        """Step and value of every line with a finite value of the metric."""
        return [(int(row["step"]), float(row[metric])) for row in self.metrics if _is_number(row.get(metric))]

    def rollout_files(self) -> list[Path]:
        """The files of rollouts, by step."""
        return sorted((self.directory / "rollouts").glob("*.jsonl"))

    def pair_files(self) -> list[Path]:
        """The files of pairs, by step."""
        return sorted((self.directory / "pairs").glob("*.jsonl"))


def read_run(directory: Path, label: str | None = None) -> RunFolder:
    """Read a run's folder. Raises InputError if there is no run in it."""
    config = directory / "config.yaml"
    if not _is_run(directory):
        raise InputError(f"{directory}: no run here (neither config.yaml nor metrics.jsonl); name a run's own folder")
    text = config.read_text(encoding="utf-8", errors="replace") if config.exists() else ""
    metrics = [row for row in read_metrics(directory) if isinstance(row, dict) and "step" in row]
    sessions = list(lines_of(directory / "sessions.jsonl"))
    name = label or directory.resolve().name
    return RunFolder(directory, name, text, _mapping(text), metrics, read_events(directory), sessions)


def runs_in(directory: Path) -> list[Path]:
    """The folder itself if it holds a run, else the folders of the runs in it.

    Raises InputError if there is no run in it, naming what is wrong.
    """
    if _is_run(directory):
        return [directory]
    if not directory.is_dir():
        raise InputError(f"{directory}: no such folder; name a run's folder, such as runs/demo/cooper")
    found = sorted(path for path in directory.iterdir() if path.is_dir() and _is_run(path))
    if not found:
        raise InputError(f"{directory}: neither a run (config.yaml, metrics.jsonl) nor a folder of runs")
    return found


def _is_run(directory: Path) -> bool:
    return any((directory / name).exists() for name in ("config.yaml", "metrics.jsonl"))


def read_runs(directories: Sequence[Path], labels: Mapping[Path, str] | None = None) -> list[RunFolder]:
    """Read several runs. Runs of one name are told apart by as much of their path as it takes."""
    if not directories:
        raise InputError("no run to report on; name at least one run's folder")
    runs = [read_run(directory, (labels or {}).get(directory)) for directory in directories]
    if len({run.label for run in runs}) == len(runs):
        return runs
    paths = [run.directory.resolve().parts for run in runs]
    length = next((n for n in range(1, 50) if len({path[-n:] for path in paths}) == len(paths)), 50)
    return [read_run(run.directory, "/".join(path[-length:])) for run, path in zip(runs, paths, strict=True)]


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a JSON-lines file, up to a line that a crash or a writer at work has cut short."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line in file:
            if not line.endswith("\n"):
                return
            record = json.loads(line)
            if isinstance(record, dict):
                yield record


def _mapping(text: str) -> Mapping[str, Any]:
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):  # somebody edited it; the page shows the text as it is
        return {}
    return found if isinstance(found, dict) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
