"""The state of the service: scoring, commits, checkpoints and recovery. One thread owns it."""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cooper_rl.errors import InputError
from cooper_rl.observe.hacking_alarm import HACKING, HackingAlarm
from cooper_rl.rewards.base import REWARDS
from cooper_rl.rollouts import AnswerGroup
from cooper_rl.service.config import CommitPolicy, ServerConfig
from cooper_rl.service.history import History, Record, RememberingAssistant, not_undone
from cooper_rl.stage2.cooper_reward import CooperReward
from cooper_rl.stage2.scored import OpenStep, OtherContentError, Scored, ScoredGroup, Updated

logger = logging.getLogger(__name__)


class Refusal(Exception):
    """An HTTP status and a message with the reason and the remedy."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})


@dataclass(frozen=True)
class ScoreAsk:
    """One request to score. `policy` says when to train, for requests without a step."""

    groups: list[AnswerGroup]
    step: int | None = None
    train: bool = True
    run: str | None = None
    policy: CommitPolicy | None = None
    partial: frozenset[str] = frozenset()
    """Ids of the groups that may get more answers from other requests."""

    @property
    def rows(self) -> int:
        return sum(len(group.answers) for group in self.groups)

    @property
    def names(self) -> set[str]:
        """Groups that it adds to the step."""
        return {group.id for group in self.groups} if self.train else set()


def check_limits(ask: ScoreAsk, config: ServerConfig) -> None:
    """Raises Refusal (413) for too many answers or a text that is too long."""
    most, limit = config.max_rows, config.max_characters
    if ask.rows > most:
        raise Refusal(413, f"{ask.rows} answers in one request, of {most} allowed (serve.max_rows); split it")
    for group in ask.groups:
        problem, texts = group.problem, [answer.transcript for answer in group.answers]
        longest = max(map(len, [*texts, problem.question, problem.answer, problem.solution or ""]))
        if longest > limit:
            message = f"group {group.id}: a text of {longest} characters, {limit} allowed (serve.max_characters)"
            raise Refusal(413, message)


def needs_whole_groups(rewards: Sequence[Any]) -> bool:
    """Whether a reward compares an answer with the others of its group."""
    kinds = {REWARDS.kind_of(part) for part in rewards}
    return "hybrid" in kinds or any(needs_whole_groups(getattr(part, "rewards", ())) for part in rewards)


def full(error: OSError) -> Refusal:
    why = f"the server cannot write to its folder ({error.strerror}); nothing was learned and nothing was lost"
    return Refusal(507, f"{why}; free some space there and send the request again")


GONE_BACK = (
    "for a new run, start another server with a folder of its own (cooper serve … serve.folder=NEW); to go on with "
    "this one, resume the trainer from its checkpoint, which restores the server's (TRL: resume_from_checkpoint; "
    "otherwise RewardClient.load(FOLDER) or POST /v1/restore)"
)
STEPS_REMEMBERED = 16
"""Steps whose results a client can still ask for."""


class Training:
    """`CooperReward` with a journal, so that nothing that was replied to a client is lost in a crash.

    Every change is journaled before it is made. After a crash or a failed update, the newest checkpoint is loaded and
    its journal replayed; on a CPU this gives the same state bit for bit.
    """

    def __init__(
        self, reward: CooperReward, history: History, assistant: RememberingAssistant | None, max_step_rows: int
    ) -> None:
        self.reward, self.history = reward, history
        self._assistant, self._max_step_rows = assistant, max_step_rows
        self.steps: dict[int, Updated] = {}
        """The last steps that were committed, or whose commit failed."""
        self.arrived = 0
        """Answers received in the step under way, including repeats."""
        self.run: str | None = None
        self.digest = ""
        """Identifies the training so far."""
        self.alarm = HackingAlarm()
        self.signs: list[str] = []
        """What the reward-hacking alarm says after the last committed step."""
        self._committed: dict[str, Any] = {}
        self._undone: list[Record] = []
        """Undo records of failed commits that are not in the journal yet."""
        self._open_records: list[Record] = []
        if history.store.latest() is None:
            self._write_checkpoint()
        self.recover()

    def score(self, asks: Sequence[ScoreAsk]) -> list[Scored | Exception]:
        """Score requests in one batch, no group twice. A result has all groups of its request, metrics of the new."""
        opened = self.reward.open_step
        replies: list[Scored | Exception] = []
        new: dict[int, tuple[int | None, list[AnswerGroup]]] = {}
        for i, ask in enumerate(asks):
            try:
                step = self._step_of(ask.step, opened) if ask.train else None
                if groups := self._unseen(ask, opened):
                    new[i] = step, groups
                if step is not None:
                    opened = opened or OpenStep(step)
                replies.append(Scored([], None, [], self.reward.version, {}, step))
            except (Refusal, InputError) as error:
                replies.append(error)
        found = self._score([groups for _, groups in new.values()])
        for (i, (step, _)), one in zip(new.items(), found, strict=True):
            replies[i] = replace(one, step=step) if isinstance(one, Scored) else one
        return self._enter(asks, replies)

    def commit(
        self,
        tell: Callable[[Updated], None],
        step: int,
        keep: Sequence[str] | None = None,
        expected: int | None = None,
        run: str | None = None,
    ) -> bool:
        """Journal the commit of a step, `tell` its state, and train; a repeat only tells. Returns whether it trained.

        If training fails, nothing is learned and the step stays open. Raises Refusal: 409 for a step that cannot be
        committed in this way, 507 for a full disk.
        """
        self._check_run(run)
        commit = {"step": step, "keep": None if keep is None else sorted(set(keep))}
        if self._committed.get("step") == step:
            if self._committed != commit:
                raise Refusal(409, f"step {step} is already committed with another keep; nothing was changed")
            tell(self.steps[step])
            return False
        self._check_commit(step, commit["keep"], expected)
        record = {"kind": "commit", **commit, "run": run, "digest": self._digest_after(step, commit["keep"])}
        self._append([*self._undone, record], durable=True)
        self._undone = []
        tell(self._note(Updated(step, self.reward.version, state="updating")))
        try:
            self._update(record)
        except Exception as error:  # the model may have been changed in part
            logger.exception("step %d: the update failed", step)
            self._take_back(record, error)
        return True

    def checkpoint(self, step: int | None = None, run: str | None = None) -> dict[str, Any]:
        """Write the state after the last update. Raises Refusal: 409 for any other step, 507 for a full disk."""
        self._check_run(run)
        last = self.reward.last_step
        if step not in (None, last):
            raise Refusal(409, f"step {step}: the server is at step {last}, and only the current step can be saved")
        try:
            if last not in self.history.checkpoints():
                self._write_checkpoint()
        except OSError as error:
            raise full(error) from error
        return {"step": last, "history": self.digest}

    def restore(self, step: int, digest: str | None = None, run: str | None = None) -> dict[str, Any]:
        """Go back to the end of a step. Raises Refusal (409) for one that is too old, unknown or of another history."""
        self._check_run(run)
        kept = self.history.checkpoints()
        if step < kept[0]:
            raise Refusal(409, f"step {step}: the oldest checkpoint that is kept is of step {kept[0]}")
        base = max(one for one in kept if one <= step)
        commits = {one["step"]: one for one in self.history.records(base) if one["kind"] == "commit"}
        if step > self.reward.last_step or (step != base and step not in commits):
            raise Refusal(409, f"step {step} was not committed here; the server is at step {self.reward.last_step}")
        then = self.history.state_of(base)["digest"] if step == base else commits[step]["digest"]
        if digest not in (None, then):
            raise Refusal(409, f"step {step}: this server reached that step with other answers; see its folder")
        self.history.cut_behind(base, lambda record: record["step"] == step and record["kind"] != "scored")
        self._undone = []
        self.steps.clear()
        self.recover()
        return {"step": self.reward.last_step, "version": self.reward.version, "history": self.digest}

    def recover(self) -> None:
        """Load the newest checkpoint and replay its journal."""
        latest = self.history.store.latest()
        if latest is None:
            raise InputError(f"{self.history.root}: no checkpoint is left; delete the folder to begin anew")
        folder, state = latest
        self.reward.load(folder)
        self.run, self.digest, self._committed = state["run"], state["digest"], state["committed"]
        self.alarm, self.signs = HackingAlarm(), state.get("signs", [])
        if "alarm" in state:
            self.alarm.restore(state["alarm"])
        self.arrived, self._open_records = 0, []
        if self._committed:
            self._note_update(self.reward.update(self.reward.last_step))  # what it found, from the checkpoint
        records = not_undone([*self.history.records(state["step"]), *self._undone])
        if self._assistant is not None:
            self._assistant.start_over([record for record in records if record["kind"] == "rewrites"])
        newest = max((record["step"] for record in records), default=0)
        for record in records:
            if record["step"] <= self.reward.last_step:
                continue
            if record["kind"] == "scored":
                self._apply(record)
            elif record["kind"] == "commit":
                try:
                    self._update(record)
                except Exception as error:
                    if record["step"] < newest:  # it has succeeded before
                        raise
                    logger.exception("step %d: the update failed", record["step"])
                    self._take_back(record, error)
        logger.info("at step %d, version %d of the reward model", self.reward.last_step, self.reward.version)

    def close(self) -> None:
        try:
            self.checkpoint()
        except Refusal as error:
            logger.error("no checkpoint at the end (%s); the journal has everything", error)
        self.history.close()
        self.reward.close()

    @property
    def _groups(self) -> dict[str, ScoredGroup]:
        return {} if self.reward.open_step is None else self.reward.open_step.groups

    def _check_run(self, run: str | None) -> None:
        if run is not None and self.run not in (None, run):
            raise Refusal(409, f"this server trains for the run {self.run!r}, not for {run!r}; start another server")

    def _step_of(self, step: int | None, opened: OpenStep | None) -> int:
        """The step that answers for `step` belong to. Raises Refusal: 425 ahead of the open step, 409 behind it."""
        last = self.reward.last_step
        if step is None:
            return opened.number if opened is not None else last + 1
        if step <= last:
            raise Refusal(409, f"step {step} is not ahead of step {last}, the last committed step; {GONE_BACK}")
        if opened is not None and step > opened.number:
            message = f"step {step} waits for step {opened.number}, which is scored but not committed"
            raise Refusal(425, message, {"Retry-After": "1"})
        if opened is not None and step < opened.number:
            raise Refusal(409, f"step {step} is behind step {opened.number}, which is under way")
        return step

    def _check_commit(self, step: int, keep: Sequence[str] | None, expected: int | None) -> None:
        """Raises Refusal (409) for a step other than the one under way, and for groups that are not in it."""
        last, opened, groups = self.reward.last_step, self.reward.open_step, self._groups
        if step <= last:
            raise Refusal(409, f"step {step} is behind step {last}, the last committed step")
        if opened is not None and opened.number != step:
            raise Refusal(409, f"step {step}: step {opened.number} is scored but not committed; commit it first")
        if expected is None and not groups:
            message = f'step {step}: nothing was scored in it; to commit it without answers, send "expected": 0'
            raise Refusal(409, message)
        if expected not in (None, len(groups)):
            counts = f"{len(groups)} groups were scored but {expected} were expected"
            raise Refusal(409, f"step {step}: {counts}; score the missing groups, or all of them again, then commit")
        if unknown := [name for name in keep or () if name not in groups]:
            raise Refusal(409, f"step {step}: keep names groups that were not scored: {', '.join(unknown[:5])}")

    def _unseen(self, ask: ScoreAsk, opened: OpenStep | None) -> list[AnswerGroup]:
        self._check_run(ask.run)
        self.reward.check(ask.groups)
        if not ask.train or opened is None:
            return ask.groups
        try:
            new = opened.unseen(ask.groups, ask.partial)
        except OtherContentError as error:
            known = f"group {error.group}: step {opened.number} has scored other content under this id"
            raise Refusal(409, f"{known}; give every group of a step an id of its own, or, {GONE_BACK}") from error
        if opened.rows + sum(len(group.answers) for group in new) > self._max_step_rows:
            raise Refusal(409, f"step {opened.number} has {opened.rows} answers already; commit it first")
        return new

    def _score(self, calls: Sequence[list[AnswerGroup]]) -> list[Scored | Exception]:
        """In one batch or, if that fails, each call separately."""
        try:
            return [*self.reward.score_calls(calls)] if calls else []
        except Exception as error:
            if len(calls) == 1:
                if not isinstance(error, InputError):
                    logger.exception("scoring failed")
                return [error]
            return [found for call in calls for found in self._score([call])]

    def _enter(self, asks: Sequence[ScoreAsk], replies: list[Scored | Exception]) -> list[Scored | Exception]:
        """Journal the results and add them to the step; every reply gets the results for its whole request."""
        entered = {i: one for i, one in enumerate(replies) if asks[i].train and isinstance(one, Scored)}
        records = []
        for i, reply in entered.items():
            new = reply.by_group(list(self.reward.models), asks[i].partial) if reply.breakdown is not None else []
            if new or asks[i].policy:
                record = {"kind": "scored", "step": reply.step, "run": asks[i].run, "arrived": asks[i].rows}
                records.append({**record, "groups": [one.record() for one in new]})
        try:
            self._append(records, durable=False)
        except Refusal as refusal:
            return [refusal if i in entered else one for i, one in enumerate(replies)]
        for record in records:
            self._apply(record)
        for i, reply in entered.items():
            assert self.reward.open_step is not None
            found = [self.reward.open_step.found(group) for group in asks[i].groups]
            logits = [next(iter(one.logits.values())) for one in found] if self.reward.models else None
            rewards, verdicts = [one.rewards for one in found], [one.verdicts for one in found]
            replies[i] = replace(reply, rewards=rewards, logits=logits, verdicts=verdicts, breakdown=None)
        return replies

    def _apply(self, record: Record) -> None:
        """Add results to the step. Overlapping journals may contain them twice."""
        groups = [ScoredGroup.of(one) for one in record["groups"]]
        opened = self.reward.open_step or OpenStep(record["step"])
        new = [one for one in groups if opened.unseen([one.group], {one.group.id} if one.partial else ())]
        if groups and not new:
            return
        if new:
            self.reward.admit(record["step"], new)
        self.arrived += record["arrived"]
        self.run = self.run or record["run"]
        self._open_records.append(record)

    def _update(self, commit: Record) -> None:
        step, groups = commit["step"], self._groups
        if partial := [groups[name].in_order() for name in sorted(groups) if groups[name].partial]:
            self.reward.admit(step, [replace(one, partial=False) for one in partial])
        if self._assistant is not None:
            rewrites = [{"kind": "rewrites", "step": step, **one} for one in self._assistant.new_records()]
            self._append(rewrites, durable=True)
        answered = self.reward.step_metrics()
        updated = self.reward.update(step, commit["keep"])
        self.signs = self.alarm.observe(step, answered)
        if self._assistant is not None:
            self._assistant.forget_used()
        self._committed, self.digest = {"step": step, "keep": commit["keep"]}, commit["digest"]
        self.run = self.run or commit["run"]
        self.arrived, self._open_records = 0, []
        self._note_update(updated)

    def _take_back(self, commit: Record, error: Exception) -> None:
        self._undone = [{"kind": "undo", "step": commit["step"]}]
        try:
            self._append(self._undone, durable=True)
            self._undone = []
        except Refusal:  # a full disk; the next commit writes it down
            logger.error("step %d: that its commit failed is not on disk yet", commit["step"])
        self.recover()
        why = f"{type(error).__name__}: {error}"
        self._note(Updated(commit["step"], self.reward.version, state="failed", error=why))

    def _append(self, records: Sequence[Record], durable: bool) -> None:
        try:
            if records:
                self.history.append(records, durable)
        except OSError as error:
            raise full(error) from error

    def _note_update(self, updated: Updated) -> None:
        self._note(replace(updated, metrics=updated.metrics | {HACKING: float(len(self.signs))}))

    def _note(self, view: Updated) -> Updated:
        self.steps[view.step] = view
        for old in sorted(self.steps)[:-STEPS_REMEMBERED]:
            del self.steps[old]
        return view

    def _write_checkpoint(self) -> None:
        def write(folder: Path) -> dict[str, Any]:
            self.reward.save(folder)
            alarm = {"alarm": self.alarm.state(), "signs": self.signs}
            return {"run": self.run, "digest": self.digest, "committed": self._committed, **alarm}

        self.history.checkpoint(self.reward.last_step, write, self._open_records)

    def _digest_after(self, step: int, keep: Sequence[str] | None) -> str:
        records = [group.in_order().record() for _, group in sorted(self._groups.items())]
        content = json.dumps([self.digest, step, keep, records], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]
