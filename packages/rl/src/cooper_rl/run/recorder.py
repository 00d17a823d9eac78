"""Writes a run's record, which is complete up to the last step: configuration, starts, metrics, rollouts and pairs."""

import json
import logging
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from cooper_audit.report.report import REPORT_COMMAND, REPORT_FILE
from cooper_audit.run.kinds import LONGEST_VALUE
from cooper_audit.run.run_record import ENDS, EVALUATIONS, NOTE, read_events, read_metrics
from cooper_base.clock import VERIFY_S
from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_base.files.durable import (
    REFUSED,
    append,
    append_line,
    by_step,
    open_to_append,
    opened,
    sync,
    write_text,
    writing,
)
from cooper_base.files.folder_lock import BUSY_RUN, check_writable, holder_of, this_process
from cooper_base.files.owned_file import check_file
from cooper_base.revisions import revisions
from cooper_rl.policy.accuracy import EvaluationResult, shares_of
from cooper_rl.record import SinkRun, TensorBoard, is_installed
from cooper_rl.record.tolerant import Tolerant
from cooper_rl.records import Rollouts
from cooper_verify.faults import FAULTS_FILE, faults_written_to

if TYPE_CHECKING:
    from cooper_rl.run_config import RunConfig
    from cooper_rl.step import StepResult

logger = logging.getLogger(__name__)


WRITTEN = (
    "config.yaml",
    "events.jsonl",
    EVALUATIONS,
    "sessions.jsonl",
    "error.txt",
    "rollouts",
    "pairs",
    "final",
    "best",
)
"""What a run writes into its folder, besides what tells that it is a run."""
LOGPROBS_EVERY = 10
"""Steps between those whose rollouts hold every token with its log-probability, which the report shades. They take
about twice the space of the text, so that in every step they would treble a run's rollouts; so they add a fifth."""
RESUME = "make room on its disk, then continue with resume=True (the option --resume)"


def check_folder(directory: Path, resume: bool, option: str = "resume=True", locked: bool = False) -> None:
    """Raises InputError if the folder cannot be used for a run.

    That is so if another run is under way in it (unless the caller has `locked` it), if a new run would overwrite an
    old one or a file of somebody's, if there is no run to resume with this `option`, and if the folder cannot be
    written. A process may resume a run that it has left open itself.
    """
    check_writable(directory)
    holder = None if locked else holder_of(directory)
    if holder is not None and not (resume and holder == this_process()):
        raise InputError(BUSY_RUN.format(folder=directory, holder=holder))
    if resume and not directory.exists():
        raise InputError(f"{directory}: no run to resume; start it without {option}")
    holds_run = (directory / "metrics.jsonl").exists() or (directory / "checkpoints").exists()
    if holds_run and not resume:
        raise InputError(
            f"{directory}: holds a run already; choose another name, continue it with {option}, or delete the folder"
        )
    for name in () if holds_run else WRITTEN:
        if os.path.lexists(directory / name):
            raise InputError(REFUSED.format(path=directory / name, what="is not of a run, but a run would write it"))
    check_file(directory / REPORT_FILE, REPORT_COMMAND)


class Recorder:
    """Writes the folder of one run. What was written survives a kill of the process, and after `sync` a power cut."""

    def __init__(
        self, directory: Path, config: "RunConfig", resume_at: int | None = None, measured: bool = True
    ) -> None:
        """Open a checked folder. A resumed run drops everything recorded after step `resume_at`; at 0 it drops step 0
        too.

        The metrics of step `resume_at` exist only if it was `measured`. This and all methods that write raise
        InputError if the disk refuses; the run can be resumed once the disk accepts writes again.
        """
        self.directory = directory
        self._metrics_path, self._events_path = directory / "metrics.jsonl", directory / "events.jsonl"
        settings = config.model_dump(mode="json")
        revision = "".join(f"# {name}: {value}\n" for name, value in revisions().items())
        with writing(directory / "config.yaml", RESUME):
            for folder in ("rollouts", "pairs"):
                (directory / folder).mkdir(parents=True, exist_ok=True)
        with writing(self._metrics_path, RESUME):  # first, because it says that the folder is a run's
            self._metrics_file = open_to_append(self._metrics_path)  # nothing waits to be written at its end
        with writing(directory / "config.yaml", RESUME):
            write_text(directory / "config.yaml", revision + yaml.safe_dump(settings, sort_keys=False))
        self._unsynced: list[Path] = []
        self._faults = ExitStack()
        self._faults.enter_context(faults_written_to(directory / FAULTS_FILE))
        if resume_at is not None:
            self._drop_after(resume_at, measured)
        purge_step = None if resume_at is None else resume_at + 1 if resume_at > 0 else 0
        run, sinks = SinkRun(directory, settings, purge_step), config.sinks
        if is_installed("tensorboard") and not any(isinstance(sink, TensorBoard) for sink in sinks):
            sinks = [TensorBoard(), *sinks]
        self._sinks = [Tolerant(sink, run) if sink.may_fail else sink.open(run) for sink in sinks]

    def sink_metrics(self) -> dict[str, float]:
        """`sinks/failures` and `sinks/dropped`, what sinks failed at and did not get since the run was opened, if any
        sink may fail.
        """
        if not (tolerant := [sink for sink in self._sinks if isinstance(sink, Tolerant)]):
            return {}
        failures, dropped = sum(sink.failures for sink in tolerant), sum(sink.dropped for sink in tolerant)
        return {"sinks/failures": float(failures), "sinks/dropped": float(dropped)}

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        with writing(self._metrics_path, RESUME):
            append(self._metrics_file, json.dumps({"step": step, **metrics}) + "\n")
        for sink in self._sinks:
            sink.metrics(step, metrics)

    def evaluation(self, step: int, test_set: str, results: Mapping[str, EvaluationResult]) -> None:
        """Append the share of each test problem's completions that are right; `test_set` is "" for the main one."""
        path = self.directory / EVALUATIONS
        _append(path, {"step": step, "set": test_set, **shares_of(results)})
        self._unsynced.append(path)

    def step(
        self,
        step: int,
        done: "StepResult",
        decode: Callable[[list[int]], str],
        verify_s: Callable[[Problem, str], float],
    ) -> list[dict[str, Any]]:
        """Write a step's completions with every score, verdict and advantage, one line per problem, and its pairs.

        `reward` comes from the reward model before the step's update. If cooptimization came first, the rewards that
        the policy was paid are written as `reward_after`, and their parts likewise. `unshaped` is the reward before any
        shaping, `after_kl` the reward after the KL penalty was subtracted, and `version` the number of steps that the
        policy had learned from when it sampled the completion. Names that come from outside Cooper contain a slash, and
        ours do not. `decode` turns token ids into text, and `verify_s` has the CPU seconds of each verdict. Returns the
        lines.
        """
        tokens = () if step % LOGPROBS_EVERY else token_logprobs(done.rollouts, decode)
        rows = _rollout_rows(done, decode, verify_s, tokens)
        self._write_lines(self.directory / "rollouts" / f"{step:06d}.jsonl", rows)
        for sink in self._sinks:
            sink.rollouts(step, rows)
        self._write_lines(self.directory / "pairs" / f"{step:06d}.jsonl", [asdict(pair) for pair in done.pairs])
        return rows

    def sync(self) -> None:
        """Force everything recorded to disk. A checkpoint must not be on disk before the record of its steps."""
        folders = (self.directory / "rollouts", self.directory / "pairs", self.directory)
        for path in (*self._unsynced, self._metrics_path, *folders):
            with writing(path, RESUME) if path.is_file() else nullcontext():
                sync(path)
        self._unsynced.clear()
        for sink in self._sinks:
            sink.flush()

    def event(self, event: dict[str, Any]) -> None:
        _append(self._events_path, event)
        self._unsynced.append(self._events_path)
        for sink in self._sinks:
            sink.event(event)

    def noted(self, message: str, count: int) -> None:
        """Append an event about the data, before the first step; not to the sinks."""
        event = {"step": 0, "metric": "", "action": NOTE, "since": 0, "values": [count], "message": message}
        _append(self._events_path, event)
        self._unsynced.append(self._events_path)

    def died(self, error: BaseException) -> Path:
        """Append an event about the error that ends the run, after the last recorded step; sinks do not get it. Returns
        the file with its traceback.
        """
        self.ended("died", f"{type(error).__name__}: {error}".strip().rstrip(":."))
        path = self.directory / "error.txt"
        try:
            write_text(path, "".join(traceback.format_exception(error)))
        except OSError as fault:  # the disk may be what the run dies of; the caller raises its own error
            logger.error("%s: %s", path, fault)
        return path

    def ended(self, action: str, message: str) -> None:
        """Append an event about what ends the run (`ENDS`), after the last recorded step; sinks do not get it."""
        rows = read_metrics(self.directory)
        step = rows[-1]["step"] if rows else 0
        event = {"step": step, "metric": "", "action": action, "since": step, "values": [], "message": message}
        try:
            _append(self._events_path, event)
        except InputError as fault:  # the disk may be what the run dies of; the caller raises its own error
            logger.error("%s", fault)

    def close(self) -> None:
        """Close the open files and the sinks. A second call does nothing."""
        if self._metrics_file.closed:
            return
        self._metrics_file.close()
        self._faults.close()
        for sink in self._sinks:
            sink.close()

    def _drop_after(self, step: int, measured: bool) -> None:
        last = step if step > 0 else -1
        kept = _cut_lines(self._metrics_path, last)
        recorded = step if measured else step - 1
        if step > 0 and kept < recorded:  # deleted or edited, because a checkpoint is written after the record
            logger.warning("%s: ends at step %d, but the run continues after %d", self._metrics_path, kept, step)
        if (self.directory / EVALUATIONS).exists():
            _cut_lines(self.directory / EVALUATIONS, recorded if step > 0 else -1)
        # Events of rollbacks are kept whatever their step, because later random numbers depend on how many there were.
        # The run is resumed, so the event of its end no longer holds.
        events = [e for e in read_events(self.directory) if e["step"] <= last or "back_to" in e]
        events = [json.dumps(event) + "\n" for event in events if event.get("action") not in ENDS]
        if self._events_path.exists():
            write_text(self._events_path, "".join(events))
        (self.directory / "error.txt").unlink(missing_ok=True)
        for folder in ("rollouts", "pairs"):
            for later, path in by_step(self.directory / folder, ".jsonl").items():
                if later > step:
                    path.unlink()

    def _write_lines(self, path: Path, rows: Sequence[dict[str, Any]]) -> None:
        with writing(path, RESUME):
            write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), durable=False)
        self._unsynced.append(path)


def _rollout_rows(
    done: "StepResult",
    decode: Callable[[list[int]], str],
    verify_s: Callable[[Problem, str], float],
    tokens: Sequence[dict[str, Any]],
) -> list[dict[str, Any]]:
    """One row for each problem of the step; `tokens` are added to the completions in order, and may be empty."""
    scored, context, rollouts = done.scored, done.scored.context, done.rollouts
    values = _score_columns(done)
    gold = context.gold.rows() if context.gold is not None else None
    advantages, drawn_by, tokens_of_next = done.advantages.rows(), iter(rollouts.versions), iter(tokens)
    rows = []
    for p, (group, prompt) in enumerate(zip(context.groups, rollouts.prompts, strict=True)):
        completions = [
            {
                "text": completion.text,
                **({} if completion.messages is None else {"transcript": completion.transcript}),
                "tokens": completion.tokens,
                "stop_reason": "stop" if completion.stopped else "length",
                "version": int(next(drawn_by)),
                "reward": scored.rewards[p][i],
                **{name: float(column[p][i]) for name, column in values.items()},
                "verdict": scored.verdicts[p][i],
                VERIFY_S: round(verify_s(group.problem, completion.text), 3),
                "advantage": advantages[p][i],
                **({} if gold is None else {"gold": bool(gold[p][i])}),
                **next(tokens_of_next, {}),
            }
            for i, completion in enumerate(group.answers)
        ]
        problem = {"problem": group.problem.id, "question": group.problem.question, "answer": group.problem.answer}
        problem |= _named_kinds(group.problem)
        rows.append({**problem, "prompt": decode(prompt.tolist()), "completions": completions})
    return rows


def _named_kinds(problem: Problem) -> dict[str, Any]:
    """The problem's data set, if it has a name, and its short fields, by which the report finds parts of the run."""
    fields = {name: value for name, value in problem.metadata.items() if isinstance(value, str | bool | int)}
    short = {name: value for name, value in fields.items() if len(str(value)) <= LONGEST_VALUE}
    return {name: value for name, value in (("set", problem.set), ("metadata", short)) if value}


def _score_columns(done: "StepResult") -> dict[str, list[list[float]]]:
    """The parts of the reward, and the rewards that were paid if these differ, each with one list for every group."""
    columns = dict(parts := done.scored.scores.parts)
    if done.paid is not done.scored:
        again = {"reward": done.paid.scores.rewards, **done.paid.scores.parts}
        changed = {name: part for name, part in again.items() if part is not parts.get(name)}
        # A user's `x` and `x_after` stay apart.
        columns |= {f"after/{name}" if "/" in name else f"{name}_after": part for name, part in changed.items()}
    if done.after_kl is not None:
        columns["after_kl"] = done.after_kl
    return {name: part.rows() for name, part in columns.items()}


def _cut_lines(path: Path, step: int) -> int:
    """Cut the file after its last whole line of `step` or an earlier one. Returns the step of that line, or -1."""
    kept, end = -1, 0
    with os.fdopen(opened(path, os.O_RDWR), "rb+") as file:
        for line in file:
            try:
                row = json.loads(line) if line.endswith(b"\n") else {"step": step + 1}
            except (ValueError, RecursionError):
                break
            row_step = row.get("step") if isinstance(row, dict) else None
            if not isinstance(row_step, int):  # not a line that the recorder wrote
                continue
            if row_step > step:
                break
            kept, end = row_step, end + len(line)
        file.truncate(end)
    return kept


def token_logprobs(rollouts: Rollouts, decode: Callable[[list[int]], str]) -> list[dict[str, Any]]:
    """For each completion in order, its `pieces` (each token decoded alone) and their `logprobs` in nats.

    Tokens that an environment wrote have the log-probability 0.
    """
    text_of = cache(lambda token: decode([token]))
    logprobs = np.round(np.where(rollouts.written, rollouts.logprobs, 0).astype(float), 3).tolist()
    pieces = [text_of(token) for token in rollouts.token_ids.values.tolist()]
    return [
        {"pieces": pieces[start:end], "logprobs": logprobs[start:end]}
        for start, end in pairwise(rollouts.token_ids.offsets.tolist())
    ]


def record_session(directory: Path, completed_steps: int, test_problems: int | None) -> None:
    """Append a line about this start, after so many steps, to `sessions.jsonl`, with the size of the first test set."""
    session = {"started": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "after_step": completed_steps, "command": sys.argv}
    session["python"] = platform.python_version()
    for package in ("torch", "transformers", "numpy"):
        with suppress(PackageNotFoundError):  # numpy may come with torch in a form of its own
            session[package] = version(package)
    session["system"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    session["test_problems"] = test_problems
    _append(directory / "sessions.jsonl", session)


def _append(path: Path, row: dict[str, Any]) -> None:
    with writing(path, RESUME):
        append_line(path, row)
