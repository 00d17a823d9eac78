"""Reads what a run has written so far, without torch, also while the run is still writing, and says where it stands.

Anybody may write into a run's folder. A file with another name is ignored, and so is a line of JSON that the recorder
would not have written; the log says how many.
"""

import json
import logging
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cooper_audit.statistics import Estimate, paired_difference
from cooper_base.config.strict_yaml import parse_yaml
from cooper_base.errors import InputError, no_folder
from cooper_base.files.durable import by_step, read_regular
from cooper_base.files.folder_lock import holder_of

logger = logging.getLogger(__name__)

ACCURACIES = ("test/gold_avg", "test/rule_avg", "gold/accuracy", "rule/accuracy")
"""The metrics that say how good the policy is, best first."""
LISTED = (*ACCURACIES, "reward/mean", "policy/reference_kl")
"""The metrics whose last values a list of runs shows."""
TIMES = ("time/step", "time/evaluate", "time/held_out_monitor")
"""The parts of a step's recorded seconds."""
EVALUATIONS = "evaluations.jsonl"
"""The file with the shares of each evaluation's problems that were right."""
OF_TEST_PROBLEMS = {"test/gold_avg": "gold", "test/rule_avg": "rule"}
"""The metrics behind which `EVALUATIONS` has each problem, and the labels there."""
OF_A_RUN = ("rollouts", "pairs", "checkpoints")
"""The large folders of a run."""
MOST_STEPS = 10**9
LONGEST_STEP = 1e7
"""Most seconds that a step can take. A larger number comes from a damaged line."""
DEEPEST = 50
"""Most levels of nesting in a line of JSON. Our own lines have 4, and a deeply nested one would overflow the stack."""
State = Literal["running", "finished", "stopped", "ended", "interrupted"]
RunRow = dict[str, Any]
"""A line of a run's record: a step's metrics, an event, a group of completions or a pair."""


@dataclass(frozen=True)
class RunRecord:
    """The contents of a run's folder. What is missing is empty."""

    directory: Path
    config: Mapping[str, Any]
    """Every setting."""
    metrics: Sequence[Mapping[str, Any]]
    """The lines of `metrics.jsonl`."""
    events: Sequence[Mapping[str, Any]]
    """The lines of `events.jsonl`."""
    label: str = ""
    """The name of the run in a report."""
    config_text: str = ""
    """The text of `config.yaml`, for a report."""
    over: bool = False
    """Whether the run has ended, though the process that trained still holds its folder."""

    @property
    def step(self) -> int:
        return int(self.metrics[-1]["step"]) if self.metrics else 0

    @property
    def steps(self) -> int:
        """The steps of the whole run; 0 if unknown."""
        steps = self.config.get("steps")
        return int(steps) if steps is not None and _is_step(steps) else 0

    def series(self, name: str) -> list[tuple[int, float]]:
        """The step and value of each finite value of a metric."""
        rows = [(int(row["step"]), row[name]) for row in self.metrics if type(row.get(name)) in (int, float)]
        return [(step, float(value)) for step, value in rows if math.isfinite(value)]

    def values(self, name: str) -> list[float]:
        return [value for _, value in self.series(name)]

    def last(self, name: str) -> float | None:
        return next(reversed(self.values(name)), None)

    @property
    def accuracy(self) -> tuple[str, float] | None:
        """Name and last value of the best of `ACCURACIES` that the run records."""
        accuracies = ((name, self.last(name)) for name in ACCURACIES)
        return next(((name, value) for name, value in accuracies if value is not None), None)

    @cached_property
    def seconds(self) -> list[float]:
        """The seconds of every recorded step, including evaluations."""
        return [sum(_seconds(row.get(name, 0.0)) for name in TIMES) for row in self.metrics]

    @cached_property
    def sessions(self) -> list[dict[str, Any]]:
        """One for each start of the run."""
        return _shaped(self.directory / "sessions.jsonl", _session, "start of the run")

    @cached_property
    def started(self) -> datetime | None:
        """When the run was started for the first time: from `sessions.jsonl` or, without it, the first rollouts."""
        if self.sessions and "started" in self.sessions[0]:
            return datetime.fromisoformat(self.sessions[0]["started"]).astimezone()
        first = self.directory / "rollouts" / "000001.jsonl"
        if not first.is_file():
            return None
        took = sum(self.seconds[:2]) if self.metrics and self.metrics[0]["step"] == 0 else sum(self.seconds[:1])
        with suppress(ValueError, OverflowError, OSError):  # a time outside the years that the system can represent
            return datetime.fromtimestamp(first.stat().st_mtime - took).astimezone()
        return None

    def rise(self, metric: str) -> Estimate | None:
        """How much `test/rule_avg` or `test/gold_avg` is higher in the last evaluation than in the first, paired by
        problem. None for other metrics, and without two evaluations of the same problems on record."""
        label = OF_TEST_PROBLEMS.get(metric, "")
        rows = _shaped(self.directory / EVALUATIONS, _evaluation, "evaluation") if label else []
        rows = [row for row in rows if not row["set"] and label in row]
        if not rows or rows[0]["step"] == rows[-1]["step"] or rows[0]["problems"] != rows[-1]["problems"]:
            return None
        shares = np.array([rows[0][label], rows[-1][label]], dtype=float)  # NaN where nothing was judged
        shares = shares[:, ~np.isnan(shares).any(axis=0)]
        return paired_difference(shares[0], shares[1]) if shares.size else None

    @property
    def checkpoints(self) -> list[int]:
        """The steps of the checkpoints, oldest first."""
        return [*by_step(self.directory / "checkpoints")]

    def rollouts(self, steps: Sequence[int] | None = None) -> Iterator[dict[str, Any]]:
        """Every recorded completion with its `step` and problem, or only those of `steps`."""
        for path in self.files("rollouts"):
            for row in read_groups(path) if steps is None or int(path.stem) in steps else []:
                problem = {name: value for name, value in row.items() if name != "completions"}
                yield from ({"step": int(path.stem), **problem, **completion} for completion in row["completions"])

    def pairs(self) -> Iterator[dict[str, Any]]:
        """Every recorded pair with its `step`."""
        return ({"step": int(path.stem), **row} for path in self.files("pairs") for row in read_pairs(path))

    def files(self, folder: Literal["rollouts", "pairs"]) -> list[Path]:
        """The files of completions or of pairs, by step. The name of a file is its step."""
        return [*by_step(self.directory / folder, ".jsonl").values()]


def is_run(directory: Path) -> bool:
    return (directory / "config.yaml").is_file() and (directory / "rollouts").is_dir()


def read_record(directory: Path) -> RunRecord:
    """Read a run's folder. Raises InputError if it holds no run, or a `config.yaml` that is not YAML."""
    record = read_run(_checked(directory))
    return record if record.config else replace(record, config=_settings(directory, record.config_text))


def read_summary(directory: Path) -> tuple[RunRecord, float]:
    """Like `read_record`, but reads only the first and last line of the metrics, those with the last value of each of
    `LISTED`, and the seconds of the whole run. It takes a twentieth of the time.
    """
    config = _config_text(_checked(directory))
    rows, seconds = _last_metrics(directory / "metrics.jsonl")
    settings = _settings(directory, config)
    return RunRecord(directory, settings, rows, read_events(directory), directory.resolve().name, config), seconds


def _checked(directory: Path) -> Path:
    if not is_run(directory):
        raise InputError(f"{directory}: holds no run (no config.yaml with rollouts/ beside it); see `cooper runs`")
    return directory


def _config_text(directory: Path) -> str:
    try:
        return read_regular(directory / "config.yaml").decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _settings(directory: Path, text: str) -> dict[str, Any]:
    try:
        settings, _ = parse_yaml(text)
    except ValueError as error:
        raise InputError(f"{directory / 'config.yaml'}: {error}") from error
    return settings if isinstance(settings, dict) else {}


def find_runs(folder: Path) -> list[Path]:
    """The folders of all runs in `folder`, itself included, by name. Raises InputError if it does not exist."""
    if not folder.is_dir():
        raise no_folder(folder, "name the folder that holds your runs")
    run_folders = []
    for path, inner, _ in os.walk(folder):
        if is_run(Path(path)):
            run_folders.append(Path(path))
            inner[:] = [name for name in inner if name not in OF_A_RUN]  # thousands of files, and never a run
    return sorted(run_folders)


def read_run(directory: Path, label: str | None = None) -> RunRecord:
    """Read a run's folder, a `config` that cannot be read as empty. Raises InputError if there is no run in it."""
    if not _has_record(directory):
        raise InputError(f"{directory}: no run here (neither config.yaml nor metrics.jsonl); name a run's own folder")
    text = _config_text(directory)
    try:
        settings = _settings(directory, text)
    except InputError:  # somebody edited it; the page shows the text as it is
        settings = {}
    name = label or directory.resolve().name
    return RunRecord(directory, settings, read_metrics(directory), read_events(directory), name, text)


def runs_in(directory: Path) -> list[Path]:
    """The folder itself if it holds a run, else those of the runs in it. Raises InputError if there is none."""
    if _has_record(directory):
        return [directory]
    if not directory.is_dir():
        raise no_folder(directory, "name a run's folder, such as runs/demo/cooper")
    folders = sorted(path for path in directory.iterdir() if path.is_dir() and _has_record(path))
    if not folders:
        raise InputError(f"{directory}: neither a run (config.yaml, metrics.jsonl) nor a folder of runs")
    return folders


def read_runs(directories: Sequence[Path], labels: Mapping[Path, str] | None = None) -> list[RunRecord]:
    """Read several runs for a report. Runs with the same name are labelled with as much of their path as tells them
    apart."""
    if not directories:
        raise InputError("no run to report on; name at least one run's folder")
    runs = [read_run(directory, (labels or {}).get(directory)) for directory in directories]
    if len({run.label for run in runs}) == len(runs):
        return runs
    paths = [run.directory.resolve().parts for run in runs]
    length = next((n for n in range(1, 50) if len({path[-n:] for path in paths}) == len(paths)), 50)
    return [replace(run, label="/".join(path[-length:])) for run, path in zip(runs, paths, strict=True)]


def read_metrics(directory: Path, last: int | None = None) -> list[RunRow]:
    """The lines of `metrics.jsonl`, or the `last` of them: each with its `step`, and every other value a number."""
    return _shaped(directory / "metrics.jsonl", _metrics, "step with its metrics", last)


NOTE = "note"
"""The `action` of an event that is about the run's data, and no fault."""
ENDS = ("died", "ended", "interrupted")
"""Actions of events that say how a run ended. A resumed run drops them."""


def read_events(directory: Path) -> list[RunRow]:
    """The lines of `events.jsonl`."""
    return _shaped(directory / "events.jsonl", _event, "event of a step")


def read_groups(path: Path) -> list[RunRow]:
    """The lines of a file of rollouts: a problem each, with its `completions`."""
    return _shaped(path, _group, "problem with its completions")


def read_rollouts(directory: Path) -> Iterator[tuple[int, list[RunRow]]]:
    """Every step of a run with its groups. The name of a file is its step."""
    return ((step, read_groups(path)) for step, path in by_step(directory / "rollouts", ".jsonl").items())


def read_pairs(path: Path) -> list[RunRow]:
    """The lines of a file of pairs."""
    return _shaped(path, _object, "pair")


def read_lines(path: Path, last: int | None = None) -> list[Any]:
    """The whole lines of a JSON Lines file, or the `last` of them; none without it. Raises InputError at a line that
    is not JSON.
    """
    try:
        data = read_regular(path)  # bytes, because a line that is being written may end inside a character
    except FileNotFoundError:  # also if a resumed run deletes it just now
        return []
    rows, lines = [], [*enumerate(data.split(b"\n")[:-1], start=1)]
    for number, line in lines if last is None else lines[-last:]:
        rows += [_parsed(path, number, line)] if line else []
    return rows


def _parsed(path: Path, number: int, line: bytes) -> Any:
    try:
        value = json.loads(line)
        if line.count(b"[") + line.count(b"{") > DEEPEST:
            _check_depth(value, DEEPEST)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else f"not JSON: {error}"
        raise InputError(f"{path}:{number}: {why}; delete the line") from error
    return value


def _check_depth(value: Any, levels: int) -> None:
    if levels == 0:
        raise RecursionError
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(inner, levels - 1)


def _last_metrics(path: Path) -> tuple[list[RunRow], float]:
    """The rows of `read_summary`, and the seconds of all rows. Parses the few lines that it returns."""
    try:
        data = read_regular(path)
    except FileNotFoundError:
        return [], 0.0
    data, rows = data[: data.rfind(b"\n") + 1], dict[int, RunRow]()

    def row_at(place: int) -> RunRow | None:
        start, end = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
        if start not in rows and (row := _metrics(_parsed(path, data.count(b"\n", 0, start) + 1, data[start:end]))):
            rows[start] = row
        return rows.get(start)

    def last_row(text: bytes, wanted: Callable[[RunRow], bool]) -> None:
        place = len(data)
        while (place := data.rfind(text, 0, place)) >= 0:
            if (row := row_at(place)) is not None and wanted(row):
                return

    if data:
        row_at(0)
    last_row(b'"step"', lambda row: True)
    for name in LISTED:
        last_row(f'"{name}"'.encode(), lambda row, name=name: math.isfinite(row.get(name, math.nan)))
    seconds = math.fsum(_seconds(float(text)) for text in _SECONDS.findall(data))
    return [rows[start] for start in sorted(rows)], seconds


_SECONDS = re.compile(rb'"(?:%s)"\s*:\s*([0-9.][-+0-9.eE]*)(?=[\s,}])' % b"|".join(name.encode() for name in TIMES))


def _shaped(path: Path, shape: Callable[[Any], RunRow | None], what: str, last: int | None = None) -> list[RunRow]:
    """The lines that have the right `shape`. The log says once how many have not."""
    rows = read_lines(path, last)
    kept = [row for row in map(shape, rows) if row is not None]
    if len(kept) < len(rows):
        _warn_once(f"{path}: {len(rows) - len(kept)} of {len(rows)} lines are left out: no {what}")
    return kept


@cache
def _warn_once(text: str) -> None:
    logger.warning("%s", text)


def _is_step(value: Any) -> bool:
    return type(value) is int and 0 <= value < MOST_STEPS


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < 2**63)


def _seconds(value: float) -> float:
    return min(max(value, 0.0), LONGEST_STEP) if math.isfinite(value) else 0.0


def _object(row: Any) -> RunRow | None:
    return row if isinstance(row, dict) else None


def _metrics(row: Any) -> RunRow | None:
    if not isinstance(row, dict) or not _is_step(row.get("step")):
        return None
    return {name: value for name, value in row.items() if _is_number(value)}


def _event(row: Any) -> RunRow | None:
    texts = ("metric", "action", "message")
    if not isinstance(row, dict) or not _is_step(row.get("step")) or not _is_step(row.get("back_to", 0)):
        return None
    return row if all(isinstance(row.get(name), str) for name in texts) else None


def _evaluation(row: Any) -> RunRow | None:
    if not isinstance(row, dict) or not _is_step(row.get("step")):
        return None
    shares = [row[label] for label in OF_TEST_PROBLEMS.values() if label in row]
    if not all(isinstance(row.get(name), str) for name in ("set", "problems")) or not shares:
        return None
    if not all(isinstance(values, list) and len(values) == len(shares[0]) for values in shares):
        return None
    return row if all(v is None or (_is_number(v) and 0 <= v <= 1) for values in shares for v in values) else None


def _session(row: Any) -> RunRow | None:
    if not isinstance(row, dict) or not isinstance(row.get("command", []), list):
        return None
    try:
        datetime.fromisoformat(row.get("started", "2000-01-01")).astimezone()
    except (TypeError, ValueError, OverflowError):  # not a date, or beyond the end of the calendar
        return None
    return row


def _group(row: Any) -> RunRow | None:
    if not isinstance(row, dict) or not isinstance(row.get("completions"), list):
        return None
    if not all(isinstance(row.get(name), str) for name in ("problem", "question")):
        return None
    return {**row, "completions": [completion for completion in row["completions"] if _is_completion(completion)]}


def _is_completion(row: Any) -> bool:
    if not isinstance(row, dict) or not _is_number(row.get("reward")):
        return False
    return all(isinstance(row.get(name), str) for name in ("text", "verdict"))


def is_right(completion: Mapping[str, Any]) -> bool | None:
    """Whether gold, or the rule if there is no gold, calls a recorded completion right.

    None if neither has judged it, because the rule was silent or ran out of time. `unparsed` counts as wrong.
    """
    if isinstance(gold := completion.get("gold"), bool):
        return gold
    verdict = completion.get("verdict")
    return None if verdict in ("silent", "timeout", None) else verdict == "correct"


@dataclass(frozen=True)
class RunStatus:
    state: State
    """`running`: a process holds the folder. `stopped`: a watch rule ended the run. `ended`: a callback did.
    `interrupted`: anything else, a kill included."""
    detail: str
    """The process that trains, the rule that stopped the run, or the step at which a resumed run would continue."""
    died: bool
    """Whether the run ended against its user's wish: by an error, a kill, or a rollback that was not possible."""
    end: str
    """A sentence about an end before the last step; empty if an interrupt left a checkpoint."""
    seconds_per_step: float | None
    """Mean of the last steps, evaluations included."""
    seconds_left: float | None
    """Estimate for a run that is running."""
    tokens_per_second: float | None
    """Sampled tokens a second, over the last steps."""


def status_of(run: RunRecord) -> RunStatus:
    state, detail, died, end = _state(run)
    recent = [(row, seconds) for row, seconds in zip(run.metrics, run.seconds, strict=True) if "time/step" in row][-20:]
    pace = math.fsum(seconds for _, seconds in recent) / len(recent) if recent else None
    tokens = math.fsum(value for row, _ in recent if math.isfinite(value := row.get("rollout/tokens", 0.0)))
    in_steps = math.fsum(_seconds(row["time/step"]) for row, _ in recent)
    left = min(pace * max(run.steps - run.step, 0), 1e12) if pace is not None and state == "running" else None
    return RunStatus(state, detail, died, end, pace, left, tokens / in_steps if in_steps > 0 else None)


def _state(run: RunRecord) -> tuple[State, str, bool, str]:
    if not run.over and (holder := holder_of(run.directory)) is not None:
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
    if action == "interrupted":
        return "interrupted", goes_on, False, ""
    if action == "ended":
        return "ended", f"{last['message']}; {goes_on}", False, f"At step {run.step} {last['message']}."
    if end:
        return "interrupted", f"died: {last['message']}; {goes_on}", True, end
    # An interrupted run writes a checkpoint of its last step.
    if run.sessions and run.step not in run.checkpoints:
        end = f"The run ended after step {run.step} of {run.steps or '?'} without a word: killed, or out of memory."
    return "interrupted", goes_on, bool(end), end


def _has_record(directory: Path) -> bool:
    return any((directory / name).exists() for name in ("config.yaml", "metrics.jsonl"))


def flat(value: Any, item: str = ".{}", name: str = "") -> dict[str, str]:
    """Nested settings under dotted names, as text. `item` formats the position in a list that holds settings."""
    if isinstance(value, dict) and value:
        inner = {f"{name}.{key}" if name else str(key): part for key, part in value.items()}
    elif isinstance(value, list) and any(isinstance(part, dict) for part in value):
        inner = {name + item.format(place): part for place, part in enumerate(value)}
    else:
        return {name: value if isinstance(value, str) else json.dumps(value, default=str)}
    return {key: text for name, part in inner.items() for key, text in flat(part, item, name).items()}
