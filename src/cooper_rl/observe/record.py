"""A run's record on disk: configuration, metrics, rollouts and pairs, complete up to the last step."""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from cooper_rl.clock import VERIFY_S
from cooper_rl.data.problem import Problem
from cooper_rl.observe.revision import revisions
from cooper_rl.observe.run_record import read_events as read_events
from cooper_rl.observe.run_record import read_metrics as read_metrics
from cooper_rl.observe.sinks import Sink, SinkConfig, SinkRun
from cooper_rl.observe.sinks.tensorboard import TensorBoard
from cooper_rl.observe.sinks.tolerant import Tolerant
from cooper_rl.observe.token_logprobs import token_logprobs
from cooper_rl.persist.durable import sync, write_text
from cooper_rl.rollouts import Ragged, Rollouts
from cooper_rl.run_config import RunConfig
from cooper_rl.stage2.open_step import Scored
from cooper_rl.stage2.pairs import Pair

logger = logging.getLogger(__name__)


class Recorder:
    """Writes one run's folder.

    Every line is flushed, so nothing recorded is lost if the run is killed. After `sync` it survives a power cut too.
    """

    def __init__(self, directory: Path, config: RunConfig, resume_at: int | None = None):
        """Open the folder, which the caller has checked with `check_folder`.

        `resume_at` is the step after which a resumed run continues; later records are dropped. At 0 all records are
        dropped, because the evaluation before the first step is made again.
        """
        self.directory = directory
        self._wanted = config.record
        self._metrics_path = directory / "metrics.jsonl"
        self._events_path = directory / "events.jsonl"
        for folder in ("rollouts", "pairs"):
            (directory / folder).mkdir(parents=True, exist_ok=True)
        self._write_config(config)
        self._metrics_file = self._metrics_path.open("a", encoding="utf-8")
        self._unsynced: list[Path] = []
        if resume_at is not None:
            self._drop_after(resume_at)
        purge_step = None if resume_at is None else resume_at + 1 if resume_at > 0 else 0
        run = SinkRun(directory, config.model_dump(mode="json"), purge_step)
        self._sinks = [_opened(sink, run) for sink in (*_default_sinks(config), *config.sinks)]

    def sink_metrics(self) -> dict[str, float]:
        """`sinks/failures`, the failed attempts to reach a sink since the run was opened, if any sink may fail."""
        tolerant = [sink for sink in self._sinks if isinstance(sink, Tolerant)]
        return {"sinks/failures": float(sum(sink.failures for sink in tolerant))} if tolerant else {}

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Append one step's line to `metrics.jsonl` and give it to every sink."""
        self._metrics_file.write(json.dumps({"step": step, **metrics}) + "\n")
        self._metrics_file.flush()
        for sink in self._sinks:
            sink.metrics(step, metrics)

    def rollouts(
        self,
        step: int,
        rollouts: Rollouts,
        scored: Scored,
        advantages: Ragged,
        decode: Callable[[list[int]], str],
        verify_s: Callable[[Problem, str], float],
        after_kl: Ragged | None = None,
        paid: Scored | None = None,
    ) -> list[dict[str, Any]]:
        """Write a step's completions with every score, verdict and advantage, one line per problem. Returns the lines.

        `reward` is the reward by the models as the step found them, which is what was paid unless stage 2 came first:
        then `paid` has what was, and it is written as `reward_after`, with its parts named in the same way. If there is
        any shaping, `unshaped` is the reward before it. If the reward has a KL penalty, `after_kl` is what was paid
        minus that penalty. `version` is the number of steps that the policy
        had learned from when it drew a completion. `prompt` is the prompt as the policy read it; `decode` turns token
        ids into text, and `verify_s` tells the CPU seconds that the verdict on a completion cost. `pieces` and their
        `logprobs` are there in the steps that `record.logprobs_every` asks for.
        """
        tokens = token_logprobs(rollouts, decode) if self._wanted.is_due(step) else None
        prompts, versions = [decode(prompt.tolist()) for prompt in rollouts.prompts], rollouts.versions
        paid_for = advantages.rows()
        columns = {name: part.rows() for name, part in scored.scores.parts.items()}
        if paid is not None and paid is not scored:
            again = {"reward": paid.scores.rewards, **paid.scores.parts}
            parts = scored.scores.parts
            columns |= {f"{name}_after": part.rows() for name, part in again.items() if part is not parts.get(name)}
        if after_kl is not None:
            columns["after_kl"] = after_kl.rows()
        gold = scored.context.gold.rows() if scored.context.gold is not None else None
        rows, drawn_by, tokens_of = [], iter(versions), iter(tokens or ())
        for p, group in enumerate(scored.context.groups):
            completions = [
                {
                    "text": completion.text,
                    "tokens": completion.tokens,
                    "stop_reason": "stop" if completion.stopped else "length",
                    "version": int(next(drawn_by)),
                    "reward": scored.rewards[p][i],
                    **{name: float(column[p][i]) for name, column in columns.items()},
                    "verdict": scored.verdicts[p][i],
                    VERIFY_S: round(verify_s(group.problem, completion.text), 3),
                    "advantage": paid_for[p][i],
                    **({} if gold is None else {"gold": bool(gold[p][i])}),
                    **({} if tokens is None else next(tokens_of)),
                }
                for i, completion in enumerate(group.answers)
            ]
            problem = group.problem
            rows.append(
                {
                    "problem": problem.id,
                    "question": problem.question,
                    "answer": problem.answer,
                    "prompt": prompts[p],
                    "completions": completions,
                }
            )
        self._write_lines(self.directory / "rollouts" / f"{step:06d}.jsonl", rows)
        for sink in self._sinks:
            sink.rollouts(step, rows)
        return rows

    def pairs(self, step: int, pairs: Sequence[Pair]) -> None:
        """Write a step's pairs with their origins and the reward model's logits before and after."""
        self._write_lines(self.directory / "pairs" / f"{step:06d}.jsonl", [asdict(pair) for pair in pairs])

    def sync(self) -> None:
        """Force everything recorded to disk. A checkpoint must not be on disk before the record of its steps."""
        folders = (self.directory / "rollouts", self.directory / "pairs", self.directory)
        for path in (*self._unsynced, self._metrics_path, *folders):
            sync(path)
        self._unsynced.clear()
        for sink in self._sinks:
            sink.flush()

    def event(self, event: dict[str, Any]) -> None:
        """Append an event to `events.jsonl`: what a watch rule found and what was done about it."""
        with self._events_path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")
        self._unsynced.append(self._events_path)
        for sink in self._sinks:
            sink.event(event)

    def died(self, error: BaseException) -> None:
        """Append an event about the error that ends the run, after the last recorded step; not to the sinks."""
        rows = read_metrics(self.directory)
        step = rows[-1]["step"] if rows else 0
        message = f"{type(error).__name__}: {error}".strip().rstrip(":.")
        event = {"step": step, "metric": "", "action": "died", "since": step, "values": [], "message": message}
        try:
            with self._events_path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(event) + "\n")
        except OSError as fault:  # the disk may be what the run dies of; its own error is raised by the caller
            logger.error("%s: %s", self._events_path, fault)

    def close(self) -> None:
        """Close the open files and the sinks. A second call does nothing."""
        if self._metrics_file.closed:
            return
        self._metrics_file.close()
        for sink in self._sinks:
            sink.close()

    def _drop_after(self, step: int) -> None:
        last = step if step > 0 else -1
        kept = _cut_lines(self._metrics_path, last)
        if step > 0 and kept < step:  # deleted or edited, because a checkpoint is written after the record
            logger.warning("%s: ends at step %d, but the run continues after %d", self._metrics_path, kept, step)
        # Rollbacks stay in the record, whatever step the run is at now: later random numbers depend on their count.
        events = [e for e in read_events(self.directory) if e["step"] <= last or "back_to" in e]
        events = [e for e in events if e.get("action") != "died"]  # a resumed run is the one that did not die
        if self._events_path.exists():
            write_text(self._events_path, "".join(json.dumps(event) + "\n" for event in events))
        for folder in ("rollouts", "pairs"):
            for path in (self.directory / folder).glob("*.jsonl"):
                if int(path.stem) > step:
                    path.unlink()

    def _write_lines(self, path: Path, rows: Sequence[dict[str, Any]]) -> None:
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        self._unsynced.append(path)

    def _write_config(self, config: RunConfig) -> None:
        text = "".join(f"# {name}: {value}\n" for name, value in revisions().items())
        text += yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)
        write_text(self.directory / "config.yaml", text)


def _cut_lines(path: Path, step: int) -> int:
    """Cut the file after its last complete line of `step` or an earlier one. Returns the step of that line, or -1."""
    kept, end = -1, 0
    with path.open("rb+") as file:
        for line in file:
            row_step = _step_of(line)
            if row_step is None or row_step > step:
                break
            kept, end = row_step, end + len(line)
        file.truncate(end)
    return kept


def _step_of(line: bytes) -> int | None:
    """The step of a line, or None for a line that a crash has cut short."""
    try:
        return json.loads(line)["step"] if line.endswith(b"\n") else None
    except ValueError:
        return None


def _opened(sink: SinkConfig, run: SinkRun) -> Sink:
    return Tolerant(sink, run) if sink.may_fail else sink.open(run)


def _default_sinks(config: RunConfig) -> list[SinkConfig]:
    """TensorBoard if it is installed, unless `sinks` already lists it."""
    tensorboard = TensorBoard()
    listed = any(isinstance(sink, TensorBoard) for sink in config.sinks)
    return [tensorboard] if tensorboard.installed and not listed else []
