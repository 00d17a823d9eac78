"""The state of the service: scoring, commits, checkpoints and recovery. One thread owns it."""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from cooper_rl.data.problem import Problem
from cooper_rl.engines.base import Metrics
from cooper_rl.errors import InputError
from cooper_rl.rewards.base import REWARDS
from cooper_rl.rewards.rule.verdict import Verdict
from cooper_rl.rollouts import Answer, AnswerGroup
from cooper_rl.service.config import CommitPolicy, ServerConfig
from cooper_rl.service.history import History, Record, RememberingAssistant, not_undone
from cooper_rl.stage2.cooper_reward import CooperReward
from cooper_rl.stage2.open_step import Scored, Updated
from cooper_rl.stage2.pairs import Pair


class Refusal(Exception):
    """An HTTP status and a message with the reason and the remedy."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


@dataclass(frozen=True)
class Asked:
    """A group in a request. A partial group may get more answers from other requests."""

    group: AnswerGroup
    partial: bool = False


@dataclass(frozen=True)
class ScoredGroup:
    """A group with one verdict, reward and logit per answer; logits are by the model's name."""

    group: AnswerGroup
    partial: bool
    verdicts: list[Verdict]
    rewards: list[float]
    logits: dict[str, list[float]]

    def pick(self, places: Sequence[int]) -> Self:
        """The answers at these places, in this order."""
        return replace(
            self,
            group=replace(self.group, answers=[self.group.answers[i] for i in places]),
            verdicts=[self.verdicts[i] for i in places],
            rewards=[self.rewards[i] for i in places],
            logits={name: [row[i] for i in places] for name, row in self.logits.items()},
        )

    def joined(self, other: "ScoredGroup") -> Self:
        """With the answers of `other` appended."""
        return replace(
            self,
            group=replace(self.group, answers=[*self.group.answers, *other.group.answers]),
            verdicts=self.verdicts + other.verdicts,
            rewards=self.rewards + other.rewards,
            logits={name: row + other.logits[name] for name, row in self.logits.items()},
        )

    def closed(self) -> Self:
        """With the answers of a partial group sorted by id, so that the order of arrival does not matter."""
        if not self.partial:
            return self
        answers = self.group.answers
        return self.pick(sorted(range(len(answers)), key=lambda i: answers[i].id or ""))

    def record(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def of(cls, record: dict[str, Any]) -> Self:
        """From what `record` returned."""
        group = record["group"]
        answers = [Answer(**answer) for answer in group["answers"]]
        return cls(**{**record, "group": AnswerGroup(group["id"], Problem(**group["problem"]), answers)})


@dataclass(frozen=True)
class ScoreAsk:
    """One request to score. `policy` says when to train, for requests without a step."""

    groups: list[Asked]
    step: int | None = None
    train: bool = True
    run: str | None = None
    policy: CommitPolicy | None = None

    @property
    def rows(self) -> int:
        """Number of answers."""
        return sum(len(one.group.answers) for one in self.groups)

    @property
    def names(self) -> set[str]:
        """Groups that it adds to the step."""
        return {one.group.id for one in self.groups} if self.train else set()


@dataclass(frozen=True)
class ScoreReply:
    """One entry per group of the request; the metrics cover new groups only."""

    step: int | None
    version: int
    groups: list[ScoredGroup]
    metrics: Metrics


@dataclass(frozen=True)
class StepView:
    """The state of a step: `open`, `updating`, `done` or `failed`."""

    step: int
    state: str
    version: int
    metrics: Metrics = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)
    error: str | None = None


@dataclass
class Book:
    """The groups of one step by id. `arrived` counts the answers received, including repeats."""

    step: int
    groups: dict[str, ScoredGroup] = field(default_factory=dict)
    arrived: int = 0
    rows: int = 0
    """Answers in all groups."""

    def unseen(self, asked: Asked) -> AnswerGroup | None:
        """The part of a group that has no results yet. Raises Refusal (409) if it contradicts the part that has."""
        known, group = self.groups.get(asked.group.id), asked.group
        if known is None:
            return group
        same = (known.partial, known.group.problem) == (asked.partial, group.problem)
        if not asked.partial:
            if not same or list(known.group.answers) != list(group.answers):
                raise self._contradiction(group.id)
            return None
        before = {answer.id: answer for answer in known.group.answers}
        if not same or any(before.get(answer.id, answer) != answer for answer in group.answers):
            raise self._contradiction(group.id)
        new = [answer for answer in group.answers if answer.id not in before]
        return replace(group, answers=new) if new else None

    def add(self, scored: ScoredGroup) -> None:
        """Add a group, or more answers of a partial group."""
        name = scored.group.id
        self.rows += len(scored.rewards)
        self.groups[name] = self.groups[name].joined(scored) if name in self.groups else scored

    def found(self, asked: Asked) -> ScoredGroup:
        """The results for a group that has been added, in the order of its answers."""
        known = self.groups[asked.group.id]
        if not asked.partial:
            return known
        places = {answer.id: i for i, answer in enumerate(known.group.answers)}
        return known.pick([places[answer.id] for answer in asked.group.answers])

    def digest(self, before: str, keep: Sequence[str] | None) -> str:
        """Identifies the training up to this step's commit; `before` identifies it up to the previous one."""
        groups = [self.groups[name].closed().record() for name in sorted(self.groups)]
        content = json.dumps([before, self.step, keep, groups], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def _contradiction(self, name: str) -> Refusal:
        return Refusal(
            409,
            f"group {name}: step {self.step} has scored other content under this id; give every group of a step an id "
            "of its own, or, if the trainer has gone back, restore a checkpoint first (POST /v1/restore)",
        )


def check_run(current: str | None, run: str | None) -> None:
    """Raises Refusal (409) for a run other than the one that is trained for."""
    if run is not None and current not in (None, run):
        raise Refusal(409, f"this server trains for the run {current!r}, not for {run!r}; start another server")


def step_of(step: int | None, book: Book | None, last: int) -> int:
    """The step that answers sent for `step` belong to; `book` is the open step, `last` the last committed one.

    Raises Refusal: 425 for a step ahead of the open one, 409 for a step behind.
    """
    if step is None:
        return book.step if book is not None else last + 1
    if step <= last:
        raise Refusal(
            409,
            f"step {step} is not ahead of step {last}, the last committed step; if the trainer has gone back, "
            "restore a checkpoint first (POST /v1/restore)",
        )
    if book is not None and step > book.step:
        message = f"step {step} waits for step {book.step}, which is scored but not committed"
        raise Refusal(425, message, {"Retry-After": "1"})
    if book is not None and step < book.step:
        raise Refusal(409, f"step {step} is behind step {book.step}, which is under way")
    return step


def check_commit(book: Book | None, last: int, step: int, keep: Sequence[str] | None, expected: int | None) -> None:
    """Raises Refusal (409) for a step other than the one under way, and for groups that are not in it."""
    if step <= last:
        raise Refusal(409, f"step {step} is behind step {last}, the last committed step")
    if book is not None and book.step != step:
        raise Refusal(409, f"step {step}: step {book.step} is scored but not committed; commit it first")
    groups = book.groups if book is not None else {}
    if expected is None and not groups:
        raise Refusal(409, f'step {step}: nothing was scored in it; to commit it without answers, send "expected": 0')
    if expected not in (None, len(groups)):
        raise Refusal(
            409,
            f"step {step}: {len(groups)} groups were scored but {expected} were expected; score the missing groups, or "
            "all of them again, then commit",
        )
    if unknown := [name for name in keep or () if name not in groups]:
        raise Refusal(409, f"step {step}: keep names groups that were not scored: {', '.join(unknown[:5])}")


def check_limits(ask: ScoreAsk, config: ServerConfig) -> None:
    """Raises Refusal (413) for too many answers or a text that is too long."""
    if ask.rows > config.max_rows:
        raise Refusal(
            413, f"{ask.rows} answers in one request, of {config.max_rows} allowed (serve.max_rows); split it"
        )
    for one in ask.groups:
        problem, limit = one.group.problem, config.max_characters
        texts = [answer.text for answer in one.group.answers]
        longest = max(map(len, [*texts, problem.question, problem.answer, problem.solution or ""]))
        if longest > limit:
            raise Refusal(
                413, f"group {one.group.id}: a text of {longest} characters, {limit} allowed (serve.max_characters)"
            )


def needs_whole_groups(rewards: Sequence[Any]) -> bool:
    """Whether a reward compares an answer with the others of its group."""
    kinds = {REWARDS.kind_of(part) for part in rewards}
    return "hybrid" in kinds or any(needs_whole_groups(getattr(part, "rewards", ())) for part in rewards)


def full(error: OSError) -> Refusal:
    """The reply if the disk is full."""
    return Refusal(
        507,
        f"the server cannot write to its folder ({error.strerror}); nothing was learned and nothing was lost; free "
        "some space there and send the request again",
    )


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
