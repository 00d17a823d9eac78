"""The state of the service: scoring, commits, checkpoints and recovery. One thread owns it."""

import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Any

from cooper_audit.run.hacking_alarm import HACKING, HackingAlarm
from cooper_base import __version__
from cooper_base.clock import MEASURED
from cooper_base.data.answer import AnswerGroup
from cooper_base.errors import InputError
from cooper_base.files.hashes import text_key
from cooper_rl.record.exact_resume import changes, conditions
from cooper_rl.reward.cooper_reward import CooperReward
from cooper_rl.reward.pairs.base import Pair
from cooper_rl.reward.scored import Scored, Updated
from cooper_rl.service.config import ServeConfig, ServerConfig
from cooper_rl.service.history import History, HistoryRecord, RememberingAssistant, not_undone
from cooper_rl.service.ledger import Ledger, OpenStep, OtherContentError, ScoredGroup
from cooper_rl.service.requests import Refusal, ScoreAsk, drop_frames, full, reply_to
from cooper_verify.faults import faults_so_far
from cooper_verify.rules.processes.child import cpu_budget

logger = logging.getLogger(__name__)


GONE_BACK = (
    "for a new run, start another server with a folder of its own (cooper serve … serve.folder=NEW); to go on with "
    "this one, resume the trainer from its checkpoint, which restores the server's (TRL: resume_from_checkpoint; "
    "otherwise RewardClient.load(FOLDER) or POST /v1/restore)"
)
STEPS_REMEMBERED = 16
"""Steps whose results a client can still ask for."""
RETRY_S = (0.5, 2.0)
"""Pauses before an update is repeated that lacked a resource: descriptors, memory, room on the disk."""
WITHOUT_EFFECT: dict[str, Any] = {"serve": set(ServerConfig.model_fields) - {"planned_steps"}}
"""Settings that change nothing of what is learned."""
ONLY_LISTED = re.compile(
    r"(cooper|torch) version|(CPU )?threads|cooptimization\.assistant(\..+)?|rules?(\..+)?\.workers|reward_model\."
    r"(attention|device|gradient_checkpointing|optimizer_offload|tokens_per_microbatch)"
)
"""Conditions that may differ in a replay: the assistant's replies are in the journal, and the others change the last
bits, if anything."""


def _rewrites_past(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Changes with which steps that were learned under `before` would come out otherwise."""
    then, now = (
        {key: conditions[key] for key in conditions if not ONLY_LISTED.fullmatch(key)} for conditions in (before, now)
    )
    return changes(then, now)


class Training:
    """`CooperReward` with a journal, so that nothing that was replied to a client is lost in a crash.

    Every change is journaled before it is made. After a crash or a failed update, the newest checkpoint is loaded and
    its journal replayed; on a CPU this gives the same state bit for bit.
    """

    def __init__(
        self, reward: CooperReward, history: History, assistant: RememberingAssistant | None, config: ServeConfig
    ) -> None:
        """Raises InputError for a folder that is damaged, or whose journal would be replayed under other settings."""
        self.reward, self.ledger, self.history = reward, Ledger(reward), history
        self._assistant, self._max_step_rows = assistant, config.serve.max_step_rows
        self._max_verify_s = config.serve.max_verify_s
        self._conditions = conditions(config, WITHOUT_EFFECT) | {"cooper version": __version__}
        """What decides what is learned, by dotted key."""
        self._stated: dict[str, Any] | None = None
        """The conditions that the journal names last."""
        self.fault: str | None = None
        """Why the state in memory lies between two steps, until `recover` succeeds."""
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
        self._faults = faults_so_far()
        self._undone: list[HistoryRecord] = []
        """Undo records of failed commits that are not in the journal yet."""
        self._open_records: list[HistoryRecord] = []
        history.finish_cut()
        if history.store.latest() is None:
            self._write_checkpoint()
        for change in changes((history.store.newest_state() or {}).get("conditions") or {}, self._conditions):
            logger.warning("%s: from the next step on, this is changed: %s", history.root, change)
        self.recover()

    def score(self, asks: Sequence[ScoreAsk]) -> list[Scored | Exception]:
        """Score requests in one batch, no group twice. A result has all groups of its request, metrics of the new."""
        opened = self.ledger.open_step
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
                drop_frames(error)
                replies.append(error)
        scored = self._score([groups for _, groups in new.values()])
        for (i, (step, _)), result in zip(new.items(), scored, strict=True):
            replies[i] = replace(result, step=step) if isinstance(result, Scored) else result
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
        with self._changing():
            tell(self._note(Updated(step, self.reward.version, state="updating")))
            self._finish(record)
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
        base = max(saved for saved in kept if saved <= step)
        records = self.history.records(base)
        commits = {record["step"]: record for record in records if record["kind"] == "commit"}
        if step > self.reward.last_step or (step != base and step not in commits):
            raise Refusal(409, f"step {step} was not committed here; the server is at step {self.reward.last_step}")
        then = self.history.state_of(base)["digest"] if step == base else commits[step]["digest"]
        if digest not in (None, then):
            raise Refusal(409, f"step {step}: this server reached that step with other answers; see its folder")
        if changed := self._changed_since(records, base, step):
            why = f"the steps from {base + 1} to {step} were learned under other settings ({'; '.join(changed)})"
            raise Refusal(409, f"step {step}: {why}; restore step {base}, or start the server with those settings")
        try:
            self.history.plan_cut(
                base, lambda record: record["step"] == step and record["kind"] not in ("scored", "next")
            )
        except OSError as error:
            raise full(error) from error
        with self._changing():  # `recover` makes the cut, now or after a restart
            self._undone = []
            self.steps.clear()
            self.recover()
        return {"step": self.reward.last_step, "version": self.reward.version, "history": self.digest}

    def recover(self, without: HistoryRecord | None = None) -> None:
        """Load the newest checkpoint and replay its journal, but for the commit `without`.

        An acknowledged commit whose update failed, or was cut short, is tried again. Raises InputError for a damaged
        folder, and for one whose journal would be replayed under other settings.
        """
        with self._changing():
            self.history.finish_cut()
            latest = self.history.store.latest()
            if latest is None:
                raise InputError(f"{self.history.root}: no checkpoint is left; delete the folder to begin anew")
            self._load(*latest)
            written = [*self.history.records(latest[1]["step"]), *self._undone]
            self._check_conditions(written, latest[1]["step"])
            records = not_undone(written)
            if self._assistant is not None:
                self._assistant.start_over([record for record in records if record["kind"] == "rewrites"])
            self._replay(records, without)
            for record in written:  # the step under way says that its commit failed, also after a restart
                if record["kind"] == "undo" and record["step"] > self.reward.last_step:
                    self._note(Updated(record["step"], self.reward.version, state="failed", error=record["error"]))
        self.fault = None
        logger.info("at step %d, version %d of the reward model", self.reward.last_step, self.reward.version)

    def _load(self, folder: Path, state: dict[str, Any]) -> None:
        self.reward.load(folder)
        self.run, self.digest, self._committed = state["run"], state["digest"], state["committed"]
        self.alarm, self.signs = HackingAlarm(), state["signs"]
        self.alarm.restore(state["alarm"])
        self.ledger.open_step, self.arrived, self._open_records = None, 0, []
        if (last := state["last"]) is not None:
            self._note(Updated(**{**last, "pairs": [Pair(**pair) for pair in last["pairs"]]}))

    def _replay(self, records: Sequence[HistoryRecord], without: HistoryRecord | None) -> None:
        newest = max((record["step"] for record in records if record["kind"] in ("scored", "commit")), default=0)
        for record in records:
            if record["step"] <= self.reward.last_step:
                continue
            if record["kind"] == "scored":
                self._apply(record)
            elif record["kind"] == "commit" and record != without:
                if record["digest"] != self._digest_after(record["step"], record["keep"]):
                    raise InputError(
                        f"{self.history.root}: step {record['step']} was committed with other answers than the journal "
                        "has before it; restore the folder from a copy, or let the trainer restore an earlier step"
                    )
                if record["step"] < newest:  # it has succeeded before
                    self._update(record)
                else:
                    self._finish(record)

    def _check_conditions(self, records: Sequence[HistoryRecord], base: int) -> None:
        """Raises InputError if the replay would not give what was learned."""
        stated = [record["values"] for record in records if record["kind"] == "conditions"]
        self._stated = stated[-1] if stated else None
        if changed := self._changed_since(records, base):
            listed = "\n".join(f"  {change}" for change in changed)
            raise InputError(
                f"{self.history.root}: steps after {base}, the newest checkpoint, were learned under other settings, "
                f"and these would rewrite them:\n{listed}\nundo the change, start the server and stop it with SIGTERM, "
                "which writes a checkpoint, and then change the settings, which then hold from the next step on; or "
                "use another serve.folder"
            )

    def _changed_since(self, records: Sequence[HistoryRecord], base: int, last: float = inf) -> list[str]:
        """Changes since the commits in the records of steps after `base`, up to `last`."""
        then, found = self._conditions, dict[str, None]()
        for record in records:
            if record["kind"] == "conditions":
                then = record["values"]
            elif record["kind"] == "commit" and base < record["step"] <= last:
                found |= dict.fromkeys(_rewrites_past(then, self._conditions))
        return list(found)

    def close(self) -> None:
        try:
            self.checkpoint()
        except Refusal as error:
            logger.error("no checkpoint at the end (%s); the journal has everything", error)
        self.history.close()
        self.reward.close()

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
        last, opened, groups = self.reward.last_step, self.ledger.open_step, self.ledger.groups
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
        self.reward.check(ask.groups, one_at_a_time=ask.one_at_a_time)
        if not ask.train or opened is None:
            return ask.groups
        try:
            new = opened.unseen(ask.groups, ask.partial)
        except OtherContentError as error:
            raise Refusal(409, f"{error}; give every group of a step an id of its own, or, {GONE_BACK}") from error
        if opened.rows + sum(len(group.answers) for group in new) > self._max_step_rows:
            raise Refusal(409, f"step {opened.number} has {opened.rows} answers already; commit it first")
        return new

    def _score(self, calls: Sequence[list[AnswerGroup]]) -> list[Scored | Exception]:
        """In one batch or, if that fails or takes too long to verify, each call separately."""
        if not calls:
            return []
        try:
            with cpu_budget(self._max_verify_s) as budget:
                scored: list[Scored | Exception] = [*self.ledger.score(calls)]
            if budget.is_spent and len(calls) > 1:
                return [result for call in calls for result in self._score([call])]
            if budget.is_spent:
                logger.warning(
                    "the verdicts of a request took over %g CPU seconds (serve.max_verify_s)", self._max_verify_s
                )
            return scored
        except Exception as error:  # noqa: BLE001 - logged, and told to the request
            if len(calls) == 1:
                return [reply_to(error, "scoring failed")]
            return [result for call in calls for result in self._score([call])]

    def _enter(self, asks: Sequence[ScoreAsk], replies: list[Scored | Exception]) -> list[Scored | Exception]:
        """Journal the results and add them to the step; every reply gets the results for its whole request."""
        entered = {i: reply for i, reply in enumerate(replies) if asks[i].train and isinstance(reply, Scored)}
        records = []
        for i, reply in entered.items():
            new: list[ScoredGroup] = []
            if reply.breakdown is not None:
                new = ScoredGroup.all_of(reply, asks[i].partial)
            if new or asks[i].policy:
                record = {"kind": "scored", "step": reply.step, "run": asks[i].run, "arrived": asks[i].rows}
                records.append({**record, "groups": [group.record() for group in new]})
        try:
            self._append(records, durable=False)
        except Refusal as refusal:
            drop_frames(refusal)
            return [refusal if i in entered else reply for i, reply in enumerate(replies)]
        with self._changing():
            for record in records:
                self._apply(record)
        for i, reply in entered.items():
            assert self.ledger.open_step is not None
            results = [self.ledger.open_step.results(group) for group in asks[i].groups]
            logits = [result.logits or [] for result in results] if self.reward.model is not None else None
            rewards, verdicts = [result.rewards for result in results], [result.verdicts for result in results]
            replies[i] = replace(reply, rewards=rewards, logits=logits, verdicts=verdicts, breakdown=None)
        return replies

    def _apply(self, record: HistoryRecord) -> None:
        """Add results to the step. Overlapping journals may contain them twice."""
        groups = [ScoredGroup.of(group) for group in record["groups"]]
        opened = self.ledger.open_step or OpenStep(record["step"])
        new = [group for group in groups if opened.unseen([group.group], {group.group.id} if group.partial else ())]
        if groups and not new:
            return
        if new:
            self.ledger.admit(record["step"], new)
        self.arrived += record["arrived"]
        self.run = self.run or record["run"]
        self._open_records.append(record)

    def _update(self, commit: HistoryRecord) -> None:
        step = commit["step"]
        self.ledger.close_groups()
        if self._assistant is not None:
            rewrites = [{"kind": "rewrites", "step": step, **rewrite} for rewrite in self._assistant.new_records()]
            self._append(rewrites, durable=True)
        answered = self.ledger.metrics()
        updated = self.ledger.update(step, commit["keep"])
        faults = {"rule/faults": float(faults_so_far() - self._faults)}
        self._faults = faults_so_far()
        self.signs = self.alarm.observe(step, answered)
        if self._assistant is not None:
            self._assistant.forget_used()
        self._committed, self.digest = {"step": step, "keep": commit["keep"]}, commit["digest"]
        self.run = self.run or commit["run"]
        self.arrived, self._open_records = 0, []
        self._note(replace(updated, metrics=updated.metrics | faults | {HACKING: float(len(self.signs))}))

    def _finish(self, commit: HistoryRecord) -> None:
        """Train on an acknowledged commit; if that fails, go back to the state before it, which says `failed`.

        An update that lacked a resource is tried again. If even the state before cannot be reached, the commit stays
        in the journal, and the next `recover` tries it again.
        """
        for pause_s in (*RETRY_S, None):
            try:
                self._update(commit)
                break
            except Exception as error:  # the model may have been changed in part
                logger.exception("step %d: the update failed", commit["step"])
                drop_frames(error)  # with what the update had in memory
                failure = error
            self.recover(without=commit)
            if pause_s is None or not isinstance(failure.__cause__ or failure, OSError | MemoryError):
                self._undo(commit, failure)
                break
            time.sleep(pause_s)

    def _undo(self, commit: HistoryRecord, failure: Exception) -> None:
        why = f"{type(failure).__name__}: {failure}"
        self._undone = [{"kind": "undo", "step": commit["step"], "error": why}]
        try:
            self._append(self._undone, durable=True)
            self._undone = []
        except Refusal:  # a full disk; the next commit writes it down
            logger.error("step %d: that its commit failed is not on disk yet", commit["step"])
        self._note(Updated(commit["step"], self.reward.version, state="failed", error=why))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """While the state changes: a failure here leaves the state between two steps, so `recover` has to come next."""
        try:
            yield
        except Exception as error:
            self.fault = f"{type(error).__name__}: {error}"
            raise

    def _append(self, records: Sequence[HistoryRecord], durable: bool) -> None:
        """Journal these records, after the conditions under which they are made if those are not the last named."""
        if not records:
            return
        named = [] if self._stated == self._conditions else [self._conditions_record()]
        try:
            self.history.append([*named, *records], durable)
        except OSError as error:
            raise full(error) from error
        self._stated = self._conditions

    def _conditions_record(self) -> HistoryRecord:
        return {"kind": "conditions", "step": self.reward.last_step, "values": self._conditions}

    def _note(self, view: Updated) -> Updated:
        self.steps[view.step] = view
        for old in sorted(self.steps)[:-STEPS_REMEMBERED]:
            del self.steps[old]
        return view

    def _write_checkpoint(self) -> None:
        def write(folder: Path) -> dict[str, Any]:
            self.reward.save(folder)
            alarm = {"alarm": self.alarm.state(), "signs": self.signs, "conditions": self._conditions}
            last = self._last_update()
            return {"run": self.run, "digest": self.digest, "committed": self._committed, "last": last, **alarm}

        self.history.checkpoint(self.reward.last_step, write, [self._conditions_record(), *self._open_records])

    def _last_update(self) -> dict[str, Any] | None:
        """The last committed step as JSON values, without times and memory, so that equal runs write equal
        checkpoints."""
        if not self._committed:
            return None
        view = self.steps[self._committed["step"]]
        metrics = {name: value for name, value in view.metrics.items() if not name.startswith(MEASURED)}
        return asdict(replace(view, metrics=metrics))

    def _digest_after(self, step: int, keep: Sequence[str] | None) -> str:
        records = [group.in_order().record() for _, group in sorted(self.ledger.groups.items())]
        content = json.dumps([self.digest, step, keep, records], sort_keys=True)
        return text_key(content)
