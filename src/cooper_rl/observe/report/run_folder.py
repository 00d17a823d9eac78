"""What a run has left on disk, read for its report: complete, still growing, or cut off anywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from cooper_rl.errors import InputError
from cooper_rl.observe.run_record import RunRecord, read_events, read_metrics

REVISIONS = ("cooper_version", "cooper_revision", "working_folder_revision")
"""The comments at the top of a run's `config.yaml`."""


@dataclass(frozen=True)
class RunFolder(RunRecord):
    """One run with its name in the report. Its `config` is empty if `config.yaml` is missing or cannot be read."""

    label: str
    """What the report calls the run."""
    config_text: str
    """`config.yaml` as it is."""

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


def read_run(directory: Path, label: str | None = None) -> RunFolder:
    """Read a run's folder. Raises InputError if there is no run in it."""
    config = directory / "config.yaml"
    if not _is_run(directory):
        raise InputError(f"{directory}: no run here (neither config.yaml nor metrics.jsonl); name a run's own folder")
    text = config.read_text(encoding="utf-8", errors="replace") if config.exists() else ""
    metrics = [row for row in read_metrics(directory) if isinstance(row, dict) and "step" in row]
    name = label or directory.resolve().name
    return RunFolder(directory, _mapping(text), metrics, read_events(directory), name, text)


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
    return [replace(run, label="/".join(path[-length:])) for run, path in zip(runs, paths, strict=True)]


def _mapping(text: str) -> Mapping[str, Any]:
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):  # somebody edited it; the page shows the text as it is
        return {}
    return found if isinstance(found, dict) else {}
