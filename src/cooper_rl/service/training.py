"""The state of the service: scoring, commits, checkpoints and recovery. One thread owns it."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cooper_rl.cooptimization.cooper_reward import CooperReward
from cooper_rl.cooptimization.results import Scored, Updated
from cooper_rl.errors import InputError
from cooper_rl.rollouts import AnswerGroup
from cooper_rl.service.book import Asked, Book, ScoreAsk, ScoredGroup, ScoreReply, StepView
from cooper_rl.service.checks import check_commit, check_run, full, step_of
from cooper_rl.service.history import History, Record, not_undone
from cooper_rl.service.refusal import Refusal
from cooper_rl.service.rewrites import RememberingAssistant

logger = logging.getLogger(__name__)

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
        """`assistant` is the one that `reward` was made with."""
        self.reward = reward
        self.history = history
        self.steps: dict[int, StepView] = {}
        """The last steps that were committed, or whose commit failed."""
        self.book: Book | None = None
        self.run: str | None = None
        self.digest = ""
        """Identifies the training so far."""
        self._assistant = assistant
        self._max_step_rows = max_step_rows
        self._committed: dict[str, Any] = {}
        self._undone: list[Record] = []
        """Undo records of failed commits that are not in the journal yet."""
        self._open_records: list[Record] = []
        self._committing: Record | None = None
        if history.latest() is None:
            self._write_checkpoint()
        self.recover()

    def score(self, asks: Sequence[ScoreAsk]) -> list[ScoreReply | Exception]:
        """Score requests in one batch. No two training requests may contain the same group."""
        replies: list[ScoreReply | Exception] = []
        new: list[list[AnswerGroup]] = []
        for ask in asks:
            try:
                step = step_of(ask.step, self.book, self.last_step) if ask.train else None
                new.append(self._unseen(ask))
                if step is not None:
                    self.book = self.book or Book(step)
                replies.append(ScoreReply(step, self.reward.version, [], {}))
            except (Refusal, InputError) as error:
                new.append([])
                replies.append(error)
        working = [i for i, groups in enumerate(new) if groups]
        for i, scored in zip(working, self._score([new[i] for i in working]), strict=True):
            reply = replies[i]
            if isinstance(scored, Exception):
                replies[i] = scored
            elif isinstance(reply, ScoreReply):
                replies[i] = replace(reply, groups=_scored_groups(scored, asks[i]), metrics=scored.metrics)
        replies = self._enter(asks, replies)
        if self.book is not None and not self.book.groups:
            self.book = None  # every request that would have opened the step failed
        return replies

    def begin_commit(
        self, step: int, keep: Sequence[str] | None = None, expected: int | None = None, run: str | None = None
    ) -> StepView:
        """Journal the commit of a step; `finish_commit` trains. A repeat returns the current state.

        Raises Refusal: 409 if the step cannot be committed in this way, 507 for a full disk.
        """
        check_run(self.run, run)
        commit = {"step": step, "keep": None if keep is None else sorted(set(keep))}
        if self._committed.get("step") == step:
            if self._committed != commit:
                raise Refusal(409, f"step {step} is already committed with another keep; nothing was changed")
            return self.steps[step]
        check_commit(self.book, self.last_step, step, commit["keep"], expected)
        digest = (self.book or Book(step)).digest(self.digest, commit["keep"])
        record = {"kind": "commit", **commit, "run": run, "digest": digest}
        self._append([*self._undone, record], durable=True)
        self._undone, self._committing = [], record
        return self._note(StepView(step, "updating", self.reward.version))

    def finish_commit(self) -> None:
        """Do the update that `begin_commit` journaled. If it fails, nothing is learned and the step stays open."""
        commit, self._committing = self._committing, None
        if commit is None:  # it was a repeat
            return
        try:
            self._update(commit)
        except Exception as error:  # the model may have been changed in part
            logger.exception("step %d: the update failed", commit["step"])
            self._take_back(commit, error)

    def checkpoint(self, step: int | None = None, run: str | None = None) -> dict[str, Any]:
        """Write a checkpoint of the state after the last update; returns its step and history.

        Raises Refusal: 409 if `step` is not the last committed one, 507 for a full disk.
        """
        check_run(self.run, run)
        if step not in (None, self.last_step):
            raise Refusal(
                409, f"step {step}: the server is at step {self.last_step}, and only the current step can be saved"
            )
        try:
            if self.last_step not in self.history.checkpoints():
                self._write_checkpoint()
        except OSError as error:
            raise full(error) from error
        return {"step": self.last_step, "history": self.digest}

    def restore(self, step: int, digest: str | None = None, run: str | None = None) -> dict[str, Any]:
        """Go back to the end of `step` and forget everything after it.

        Raises Refusal (409) for a step before the oldest checkpoint, never committed, or with another history.
        """
        check_run(self.run, run)
        kept = self.history.checkpoints()
        if step < kept[0]:
            raise Refusal(409, f"step {step}: the oldest checkpoint that is kept is of step {kept[0]}")
        base = max(one for one in kept if one <= step)
        commits = {one["step"]: one for one in self.history.records(base) if one["kind"] == "commit"}
        if step > self.last_step or (step != base and step not in commits):
            raise Refusal(409, f"step {step} was not committed here; the server is at step {self.last_step}")
        then = self.history.state_of(base)["digest"] if step == base else commits[step]["digest"]
        if digest not in (None, then):
            raise Refusal(409, f"step {step}: this server reached that step with other answers; see its folder")
        self.history.cut_behind(base, lambda record: record["step"] == step and record["kind"] != "scored")
        self._undone = []
        self.steps.clear()
        if self._assistant is not None:
            self._assistant.start_over()
        self.recover()
        return {"step": self.last_step, "version": self.reward.version, "history": self.digest}

    def recover(self) -> None:
        """Load the newest checkpoint and replay its journal."""
        latest = self.history.latest()
        if latest is None:
            raise InputError(f"{self.history.root}: no checkpoint is left; delete the folder to begin anew")
        folder, state = latest
        self.reward.load(folder)
        self.run, self.digest, self._committed = state["run"], state["digest"], state["committed"]
        self.book, self._open_records = None, []
        if self._committed:
            self._note(_done(self.reward.update(self.last_step)))  # what the last update found, from the checkpoint
        records = not_undone([*self.history.records(state["step"]), *self._undone])
        for record in records:
            if record["kind"] == "rewrites" and self._assistant is not None:
                self._assistant.recall(record)
        newest = max((record["step"] for record in records), default=0)
        for record in records:
            if record["step"] > self.last_step:
                self._replay(record, again=record["step"] < newest)
        logger.info("at step %d, version %d of the reward model", self.last_step, self.reward.version)

    def close(self) -> None:
        """Write a last checkpoint if possible, and release everything."""
        try:
            self.checkpoint()
        except Refusal as error:
            logger.error("no checkpoint at the end (%s); the journal has everything", error)
        self.history.close()
        self.reward.close()

    @property
    def last_step(self) -> int:
        """The last step that was updated."""
        return self.reward.last_step

    def _unseen(self, ask: ScoreAsk) -> list[AnswerGroup]:
        """The parts of a request that have no results yet."""
        check_run(self.run, ask.run)
        groups = [one.group for one in ask.groups]
        self.reward.verifier.check([group.problem for group in groups])
        if not ask.train or self.book is None:
            return groups
        new = [unseen for one in ask.groups if (unseen := self.book.unseen(one)) is not None]
        if self.book.rows + sum(len(group.answers) for group in new) > self._max_step_rows:
            raise Refusal(409, f"step {self.book.step} has {self.book.rows} answers already; commit it first")
        return new

    def _score(self, calls: Sequence[list[AnswerGroup]]) -> list[Scored | Exception]:
        """In one batch or, if that fails, each call separately."""
        try:
            return [*self.reward.evaluate(calls)] if calls else []
        except Exception as error:
            if len(calls) == 1:
                if not isinstance(error, InputError):
                    logger.exception("scoring failed")
                return [error]
            return [found for call in calls for found in self._score([call])]

    def _enter(self, asks: Sequence[ScoreAsk], replies: list[ScoreReply | Exception]) -> list[ScoreReply | Exception]:
        """Journal the results and add them to the step; every reply gets the results for its whole request."""
        entered = [(i, reply) for i, reply in enumerate(replies) if asks[i].train and isinstance(reply, ScoreReply)]
        records = [
            {
                "kind": "scored",
                "step": reply.step,
                "run": asks[i].run,
                "arrived": asks[i].rows,
                "groups": [one.record() for one in reply.groups],
            }
            for i, reply in entered
        ]
        news = [record for record, (i, _) in zip(records, entered, strict=True) if record["groups"] or asks[i].policy]
        try:
            self._append(news, durable=False)
        except Refusal as refusal:
            return [refusal if asks[i].train and isinstance(one, ScoreReply) else one for i, one in enumerate(replies)]
        for record in news:
            self._apply(record)
        book = self.book
        for i, reply in entered:
            assert book is not None
            replies[i] = replace(reply, groups=[book.found(one) for one in asks[i].groups])
        return replies

    def _apply(self, record: Record) -> None:
        """Add results to the step. Overlapping journals may contain them twice."""
        self.book = book = self.book or Book(record["step"])
        scored_groups = [ScoredGroup.of(one) for one in record["groups"]]
        new = [one for one in scored_groups if book.unseen(Asked(one.group, one.partial)) is not None]
        if scored_groups and not new:
            return
        for one in new:
            book.add(one)
        book.arrived += record["arrived"]
        self.run = self.run or record["run"]
        self._open_records.append(record)
        self._admit([one for one in new if not one.partial])

    def _admit(self, scored_groups: Sequence[ScoredGroup]) -> None:
        if scored_groups and self.book is not None:
            logits = {name: [one.logits[name] for one in scored_groups] for name in self.reward.models}
            groups, verdicts = [one.group for one in scored_groups], [one.verdicts for one in scored_groups]
            self.reward.admit(self.book.step, groups, verdicts, logits, [one.rewards for one in scored_groups])

    def _update(self, commit: Record) -> None:
        step, book = commit["step"], self.book or Book(commit["step"])
        self._admit([book.groups[name].closed() for name in sorted(book.groups) if book.groups[name].partial])
        if self._assistant is not None:
            rewrites = [{"kind": "rewrites", "step": step, **one} for one in self._assistant.new_records()]
            self._append(rewrites, durable=True)
            self._assistant.mark_recorded()
        updated = self.reward.update(step, commit["keep"])
        if self._assistant is not None:
            self._assistant.forget_used()
        self._committed, self.digest = {"step": step, "keep": commit["keep"]}, commit["digest"]
        self.run = self.run or commit["run"]
        self.book, self._open_records = None, []
        self._note(_done(updated))

    def _take_back(self, commit: Record, error: Exception) -> None:
        """An update failed and may have changed part of the model: go back to the state before it."""
        self._undone = [{"kind": "undo", "step": commit["step"]}]
        try:
            self._append(self._undone, durable=True)
            self._undone = []
        except Refusal:  # a full disk; the next commit writes it down
            logger.error("step %d: that its commit failed is not on disk yet", commit["step"])
        self.recover()
        message = f"{type(error).__name__}: {error}"
        self._note(StepView(commit["step"], "failed", self.reward.version, error=message))

    def _replay(self, record: Record, again: bool) -> None:
        """Replay a record; `again` says that it succeeded before."""
        if record["kind"] == "scored":
            self._apply(record)
        elif record["kind"] == "commit":
            try:
                self._update(record)
            except Exception as error:
                if again:
                    raise
                logger.exception("step %d: the update failed", record["step"])
                self._take_back(record, error)

    def _append(self, records: Sequence[Record], durable: bool) -> None:
        try:
            if records:
                self.history.append(records, durable)
        except OSError as error:
            raise full(error) from error

    def _note(self, view: StepView) -> StepView:
        self.steps[view.step] = view
        for old in sorted(self.steps)[:-STEPS_REMEMBERED]:
            del self.steps[old]
        return view

    def _write_checkpoint(self) -> None:
        def write(folder: Path) -> dict[str, Any]:
            self.reward.save(folder, while_open=True)
            return {"run": self.run, "digest": self.digest, "committed": self._committed}

        self.history.checkpoint(self.last_step, write, self._open_records)


def _scored_groups(scored: Scored, ask: ScoreAsk) -> list[ScoredGroup]:
    """One entry per group."""
    context = scored.context
    logits = {name: context.logits(name).rows() for name in context.model_names}
    partial = {one.group.id: one.partial for one in ask.groups}
    return [
        ScoredGroup(
            group,
            partial[group.id],
            scored.verdicts[p],
            scored.rewards[p],
            {name: rows[p] for name, rows in logits.items()},
        )
        for p, group in enumerate(context.groups)
    ]


def _done(updated: Updated) -> StepView:
    return StepView(updated.step, "done", updated.version, updated.metrics, updated.pairs)
