"""The run around the Cooper step: its record, checkpoints and evaluations, and how it stops or rolls back."""

import functools
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from cooper_audit.report.report import write_report
from cooper_audit.run.run_record import read_events, read_metrics, read_rollouts
from cooper_audit.run.watch_rules import Firing, Watch
from cooper_base.clock import Clock
from cooper_base.closing import Closing
from cooper_base.errors import EngineLost, InputError, show_users_frames
from cooper_base.files.folder_lock import FolderLock, stop_on_signal
from cooper_base.pace import ProgressLines
from cooper_base.progress import BrokenOff, Listener, Progress, listening, part
from cooper_rl.engines.base import Metrics
from cooper_rl.record.checkpoint import OF_RUN, CheckpointStore, rollback_target
from cooper_rl.record.exact_resume import random_state, restore_random_state, seed_random_state
from cooper_rl.run.build import RECOVERIES, assemble, assemble_patiently
from cooper_rl.run.callbacks import Callback, Callbacks, check_changeable
from cooper_rl.run.checkpoint_content import Position, check_kind, check_steps, export_models, restore_state, save_state
from cooper_rl.run.first_screen import (
    TRAINING_METRICS,
    best_example,
    describe_example,
    describe_learners,
    describe_prompt,
    describe_size,
    log_to_stderr,
)
from cooper_rl.run.inputs import Inputs
from cooper_rl.run.recorder import Recorder, check_folder, record_session
from cooper_rl.run_config import RunConfig, build_config
from cooper_rl.step import Parts, cooper_step

logger = logging.getLogger(__name__)

OnStep = Callable[[int, Metrics], None]
TERM_S = 8.0
"""Seconds that SIGTERM leaves for a checkpoint."""


class CooperTrainer(Closing):
    """Trains a policy and its reward model together.

    `CooperTrainer.from_config(config).fit()` is the whole of `cooper train`.
    """

    def __init__(
        self,
        config: RunConfig,
        parts: Parts,
        resume: bool = False,
        lock: FolderLock | None = None,
        callbacks: Sequence[Callback] = (),
    ):
        """Open the run's folder. With `resume`, continue after its newest checkpoint, or start if it has none yet.

        `callbacks` come before those that the settings name. `lock` is the lock of the folder, for a caller that holds
        it already. Raises InputError if there is no run to resume, if all its checkpoints are damaged or of another
        kind of run, if a new run would overwrite an old one, or if another process holds the folder.
        """
        self.config = self._given = config
        self.position = Position()
        self._rollbacks: list[int] = []  # the steps of the checkpoints that the run was rolled back to
        self.callbacks = Callbacks(callbacks, config.callbacks)
        self.parts = parts
        self.directory = Path(config.output_dir) / config.name
        self._checkpoints = CheckpointStore(self.directory / "checkpoints", config.checkpoint, OF_RUN)
        self._saved_steps = 0  # completed steps in the newest checkpoint
        self._failed_checkpoints = 0
        self._lost_after: list[int] = []  # completed steps each time an engine was lost
        self._saving = False  # callbacks are in `on_save`
        self._weights_changing = False  # the current step has begun to change weights
        self._interrupted = False
        self._stop = threading.Event()
        self.stopped_by: Firing | None = None
        """The watch rule that ended the run, if one did."""
        self.ended_by: str | None = None
        """The class of the callback that ended the run, if one did."""
        check_folder(self.directory, resume, locked=lock is not None)
        self._lock = lock or FolderLock(self.directory)
        self._begin(resume)
        test_problems = len(parts.test_sets[0].problems) if parts.test_sets else None
        record_session(self.directory, self.completed_steps, test_problems)

    @classmethod
    def from_config(
        cls,
        config: RunConfig,
        resume: bool = False,
        inputs: Inputs | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> "CooperTrainer":
        """Check the data, load the models, and open the run's folder. For `inputs` see `assemble`."""
        directory = Path(config.output_dir) / config.name
        check_folder(directory, resume)  # before any model is loaded
        (store := CheckpointStore(directory / "checkpoints", config.checkpoint, OF_RUN)).check()
        if resume and (state := store.newest_state()):
            check_kind(config, state)
            check_steps(config, state, directory)
        lock = FolderLock(directory)
        try:
            return cls(config, assemble_patiently(config, inputs), resume, lock, callbacks)
        except BaseException as error:
            lock.withdraw()
            show_users_frames(error)
            raise

    @property
    def completed_steps(self) -> int:
        return self.position.step

    def step(self) -> Metrics:
        """Do one step of the algorithm (`cooper_step`) and record it."""
        step = self.completed_steps + 1
        seed = self._seed_of(step)
        undo, random = self.parts.rollouts.mark(), random_state()
        try:
            with part(f"step {step}"):
                result = cooper_step(self.config, self.parts, step, seed)
        except BrokenOff:  # everything is as it was before the step, unless weights have changed
            undo()
            restore_random_state(random)
            raise
        finally:
            self._weights_changing = False
        decode, verify_s = self.parts.prompt_encoder.decode, self.parts.reward.verifier.cpu_s_of
        rollouts = self.recorder.step(step, result, decode, verify_s)
        self.watch.read(step, rollouts)
        if step == 1 and (example := best_example(rollouts)):
            logger.info("%s", describe_example(example))
        self.position = replace(self.position, step=step)
        return result.metrics

    def _seed_of(self, step: int) -> int:
        """Depends only on the step and the rollbacks: a resumed run samples what it would have sampled anyway, and a
        run that rolled back samples something else. The factors are larger than any number of steps, so that no two
        steps of neighbouring seeds share one."""
        return self.config.seed * 1_000_003 + step + len(self._rollbacks) * 1_000_000_000_039

    def fit(self, on_step: OnStep | None = None) -> None:
        """Run up to `config.steps`, with evaluations and checkpoints on the way.

        `on_step` is called with the number and metrics of every step. Without it the progress goes to the log, and to
        standard error if the program has not set up logging. In the end `report.html` is written into the run's folder.
        If the user's own code raises an exception, its traceback has only that code's frames, and `error.txt` has all.

        Watch rules may roll the run back or end it early (`stopped_by`). On an interrupt (SIGINT, SIGTERM) `fit` breaks
        the step off, writes a checkpoint of the one before and returns; a resumed run repeats the step. A step whose
        update has begun is finished, unless a checkpoint of the one before is there already. A second interrupt ends
        the process at once, and so does the end of `TERM_S` after SIGTERM.
        """
        lines, alone = ProgressLines(self.config.name, TRAINING_METRICS), on_step is None
        listener = Listener(lambda at: self._on_progress(at, lines if alone else None), self._weights_change)
        with stop_on_signal(self._interrupt, TERM_S), log_to_stderr() if alone else nullcontext(), listening(listener):
            try:
                while True:
                    try:
                        self._run(on_step or (lambda step, metrics: self._log(step, metrics, lines)))
                        break
                    except EngineLost as lost:
                        self._recover(lost)
            except BaseException as error:
                show_users_frames(error, f"they are in {self.recorder.died(error)}")
                raise
            report = write_report(self.directory, over=True)
            if alone:
                logger.info("run: %s\nreport: %s", self.directory, report)

    def _on_progress(self, at: Progress, lines: ProgressLines | None) -> None:
        if self._stop.is_set() and (not self._weights_changing or self._saved_steps == self.completed_steps):
            raise BrokenOff
        if lines is not None and (line := lines.line_within(at)):
            logger.info("%s", line)

    def _log(self, step: int, metrics: Metrics, lines: ProgressLines) -> None:
        if line := lines.line(step, self.config.steps, metrics):
            logger.info("%s", line)

    def _weights_change(self) -> None:
        self._weights_changing = True

    def _run(self, on_step: OnStep) -> None:
        try:
            self._steps(on_step)
        except BrokenOff:
            logger.warning("broken off; a resumed run goes on after step %d", self.completed_steps)
        # A fault that the run could not roll back from must not reach a checkpoint.
        in_a_fault = self.stopped_by is not None and self.stopped_by.rule.action == "rollback"
        if self._saved_steps < self.completed_steps and not in_a_fault:
            self._last_checkpoint()
        if self.ended_by is not None and self._unfinished and not self.interrupted and self.stopped_by is None:
            self.recorder.ended("ended", f"the callback {self.ended_by} ended the run")
        elif self.interrupted:
            self.recorder.ended("interrupted", "the run was interrupted")
        checkpoints = self._checkpoints.list()  # none, if a callback has ended the run before its first step
        if checkpoints and not self.interrupted and self._saved_steps == self.completed_steps:
            chat, best = self.parts.prompt_encoder.chat, self._checkpoints.best()
            export_models(self.config, checkpoints[-1], self.directory / "final", chat)
            if best is not None:
                export_models(self.config, best[0], self.directory / "best", chat)

    def _steps(self, on_step: OnStep) -> None:
        """Run all steps, or until a stop is requested. Raises BrokenOff if a step is cancelled."""
        logger.info(
            "%s", describe_size(self.config, self.completed_steps, [len(t.problems) for t in self.parts.test_sets])
        )
        for description in describe_learners(self.parts):
            logger.info("%s", description)
        if self.completed_steps == 0:
            logger.info("%s", describe_prompt(*self.parts.rollouts.first_prompt(self._seed_of(1))))
            if metrics := self._measure(at_start=True):
                self._record(0, metrics, on_step)
        while (not self._measured or self.completed_steps < self.config.steps) and not self._stop.is_set():
            metrics = self._step_with_callbacks()
            metrics["checkpoint/failed_writes"] = float(self._failed_checkpoints)
            metrics["engine/recoveries"] = float(len(self._lost_after))
            metrics |= self.parts.sampler.take_metrics() | self.recorder.sink_metrics()
            metrics |= self.parts.reward.verifier.metrics()
            firings = self._record(self.completed_steps, metrics, on_step)
            if self._roll_back(firings):
                continue
            for callback in self._each_callback():
                callback.after_step(self, self.completed_steps, metrics)
            if ending := [firing for firing in firings if firing.rule.action in ("stop", "rollback")]:
                self.stopped_by = ending[0]
                self.request_stop()
            wanted = self._due(self.config.checkpoint.every) or self._checkpoints.is_best(metrics)
            if wanted and not self.watch.in_doubt:  # not while a rule that rolls back sees a fault
                self._try_checkpoint(metrics)

    def _step_with_callbacks(self) -> Metrics:
        """The next step with its evaluation. If the step is cancelled, what callbacks did before it is undone."""
        if not self._measured:
            return self._step_and_measure()
        before, states = self.position, self.callbacks.states()
        try:
            for callback in self._each_callback():
                callback.before_step(self, before.step + 1)
            return self._step_and_measure()
        except BrokenOff:
            if self._measured:  # the step itself will be repeated, and not only its evaluation
                self._apply(before.changes)
                self.callbacks.restore(states)
            raise

    def change(self, settings: Mapping[str, Any]) -> None:
        """Change settings of the run, by dotted name (`{"rollout.temperature": 0.8}`), from the next step on.

        A resumed or rolled-back run has the changes that its checkpoint was written with. Raises InputError for a
        setting that is built into the run, for a value that does not fit, and while a checkpoint is written.
        """
        if self._saving:
            raise InputError("settings cannot change in on_save, after the checkpoint; change them in after_step")
        for name in settings:
            check_changeable(name)
        self._apply({**self.position.changes, **settings})
        logger.info("after step %d: %s", self.completed_steps, ", ".join(f"{k}: {v}" for k, v in settings.items()))

    def _apply(self, changed: Mapping[str, Any]) -> None:
        """Use the settings that the run was started with, with these changes."""
        values = self._given.model_dump(mode="json")
        for name, value in changed.items():
            *path, last = name.split(".")
            part = functools.reduce(lambda inner, key: inner.get(key) or {}, path, values)
            if last not in part:
                raise InputError(f"{name}: this run has no such setting to change")
            part[last] = value
        config = build_config(values) if changed else self._given
        if config.algorithm.kl is not None and config.algorithm.kl.coefficient > 0 and self.parts.reference is None:
            raise InputError("algorithm.kl: the run began without a KL term, so there is no reference policy")
        self.parts.rollouts.config = config.rollout
        if config.policy.learning_rate != self.config.policy.learning_rate:
            self.parts.policy.set_learning_rate(config.policy.learning_rate)
        before, now, model = self.config.loaded_model, config.loaded_model, self.parts.reward.model
        if model is not None and before is not None and now is not None and now.learning_rate != before.learning_rate:
            model.learner.set_learning_rate(now.learning_rate)
        self.config, self.position = config, replace(self.position, changes=changed)

    def _recover(self, lost: EngineLost) -> None:
        """Rebuild all parts and continue from the newest checkpoint. Raises EngineLost if that did not help."""
        self._lost_after.append(self.completed_steps)
        if self._lost_after.count(self.completed_steps) > RECOVERIES:
            raise lost
        logger.error("ENGINE LOST after step %d, it is started anew: %s", self.completed_steps, lost)
        self._close()
        try:
            self.parts = assemble(self._given)
            self.callbacks.renew()
            self._begin(resume=True)
        except EngineLost as again:  # a process can also die while it starts
            self._recover(again)

    def close(self) -> None:
        """Close the run's files, processes and connections."""
        try:
            self._close()
        finally:
            self._lock.close()

    def _close(self) -> None:
        try:
            self.recorder.close()
        finally:  # a sink may have something to write, and no room for it
            self.parts.close()

    def request_stop(self) -> None:
        """Ask `fit` to end as on an interrupt. If a callback asks, the run counts as ended, not as interrupted."""
        self._stop.set()

    def _interrupt(self) -> None:
        self._interrupted = True
        self._stop.set()

    def _each_callback(self) -> Iterator[Callback]:
        """Yields the callbacks in order. If one of them stops the run, `ended_by` becomes its class."""
        for callback in self.callbacks:
            before = self._stop.is_set()
            yield callback
            if self._stop.is_set() and not before and not self._interrupted:
                self.ended_by = f"{type(callback).__module__}:{type(callback).__qualname__}"

    @property
    def interrupted(self) -> bool:
        """Whether `fit` returned before the last step because a signal or a caller asked it to stop."""
        ended = self.stopped_by is not None or (self.ended_by is not None and not self._interrupted)
        return self._stop.is_set() and self._unfinished and not ended

    @property
    def _unfinished(self) -> bool:
        return not (self._finished and self._measured)

    @property
    def _measured(self) -> bool:
        return self.position.unmeasured is None

    def evaluate(self) -> Metrics:
        """Accuracy on the test problems by the rule and, where they have it, gold. Raises ValueError without any."""
        parts, clock, metrics = self.parts, Clock(), Metrics()
        if not parts.test_sets:
            raise ValueError("there are no test problems; set test_problems and evaluation.every")
        with clock.measure("evaluate"):
            parts.rollouts.settle()
            parts.sampler.sync_weights(parts.policy)
            for test_set in parts.test_sets:
                results = test_set.evaluate(parts.sampler, parts.reward.verifier, self.config.seed)
                metrics |= test_set.metrics(results)
                self.recorder.evaluation(self.completed_steps, test_set.name, results)
            parts.sampler.rest()
        return metrics | clock.parts()

    def save_checkpoint(self) -> Path:
        """Write both models, both optimizers, every random state and the data cursor.

        Raises OSError if they cannot be written, for example to a full disk. Earlier checkpoints stay as they are.
        """
        self.recorder.sync()
        folder = self._save()
        self._tell_saved(folder)
        return folder

    def _save(self, metrics: Metrics | None = None) -> Path:
        def write(folder: Path) -> dict[str, Any]:
            return save_state(self.config, self.parts, self.position, self.callbacks, folder)

        folder = self._checkpoints.save(self.completed_steps, write, metrics)
        self._saved_steps = self.completed_steps
        return folder

    def _tell_saved(self, folder: Path) -> None:
        self._saving = True
        for callback in self._each_callback():
            callback.on_save(self, self.completed_steps, folder)
        self._saving = False

    def _try_checkpoint(self, metrics: Metrics) -> None:
        """Write a checkpoint, and go on if that fails: the previous checkpoint is intact, and the next one may fit."""
        self.recorder.sync()  # outside the `try`: a record that cannot be written ends the run
        try:
            folder = self._save(metrics)
        except OSError as error:
            self._failed_checkpoints += 1
            logger.error("CHECKPOINT OF STEP %d NOT WRITTEN, but the run goes on: %s", self.completed_steps, error)
        else:
            self._tell_saved(folder)

    def _last_checkpoint(self) -> None:
        try:
            self.save_checkpoint()
        except OSError as error:
            again = f"continue from the checkpoint of step {self._saved_steps} with resume=True (the option --resume)"
            raise InputError(
                f"{self.directory}: the checkpoint of step {self.completed_steps} could not be written: {error}; "
                f"make room on the disk and {again if self._saved_steps else 'begin again: no checkpoint was written'}"
            ) from error

    def _begin(self, resume: bool) -> None:
        """Start the run or, with `resume`, continue from its newest undamaged checkpoint; without one, start again.

        The parts and callbacks must be fresh.
        """
        self.config, self.position, self._saved_steps = self._given, Position(), 0
        if resume:  # from the events, because the checkpoint of a rollback was written before the rollback
            self._rollbacks = [event["back_to"] for event in read_events(self.directory) if "back_to" in event]
        seed_random_state(self.config.seed)  # for a user's reward; the library has its own generators
        if resume and not self._restore():
            logger.warning("%s: no checkpoint yet, so the run starts from the beginning", self.directory)
        self._open_record(resume)
        for message, count in self.parts.notes.items() if self.completed_steps == 0 else ():
            self.recorder.noted(message, count)

    def _restore(self) -> bool:
        """Load the newest undamaged checkpoint, if there is one."""
        if (newest := self._checkpoints.latest()) is None:
            return False
        folder, state = newest
        check_kind(self._given, state)
        position = Position.of(state)
        self._apply(position.changes)
        restore_state(self.config, self.parts, self.callbacks, folder, state)
        if self._rollbacks[-1:] == [position.step]:  # the groups that led to the fault are not used again
            self.parts.rollouts.forget()
        self.position, self._saved_steps = position, position.step
        logger.info("resuming after step %d from %s", position.step, folder)
        return True

    def _open_record(self, resume: bool) -> None:
        resume_at = self.completed_steps if resume else None
        self.recorder = Recorder(self.directory, self._given, resume_at, self._measured)
        folder, awaited = self.directory, [best] if (best := self.config.checkpoint.keep_best) else []
        self.watch = Watch(self.config.watch_rules, read_metrics(folder), awaited, read_rollouts(folder))

    def _measure(self, at_start: bool = False) -> Metrics:
        """Evaluate the policy on test problems and the reward model on labelled completions, each if it is due."""
        now, every, monitor = at_start or self._finished, self.config.evaluation.every, self.parts.monitor
        metrics: Metrics = self.evaluate() if every and (now or self._due(every)) else {}
        if monitor is not None and (now or self._due(monitor.every)):
            clock = Clock()
            with clock.measure("held_out_monitor"):
                metrics |= monitor.measure()
            metrics |= clock.parts()
        for callback in self._each_callback() if metrics else ():
            callback.on_evaluation(self, self.completed_steps, metrics)
        return metrics

    @property
    def _finished(self) -> bool:
        return self.completed_steps == self.config.steps

    def _step_and_measure(self) -> Metrics:
        """The next step and its evaluation, or only the evaluation if the last step still lacks it."""
        step = self.completed_steps + self._measured
        metrics: Metrics = {"rollout/non_finite_logits": 0.0}
        try:
            if self._measured:
                metrics |= self.step()
                self.position = replace(self.position, unmeasured=metrics)
            metrics = (self.position.unmeasured or metrics) | self._measure()
        except FloatingPointError as error:  # a diverged policy cannot be sampled, neither in training nor evaluation
            logger.error("step %d: %s", step, error)
            metrics = (self.position.unmeasured or metrics) | {"rollout/non_finite_logits": 1.0}
        self.position = replace(self.position, step=step, unmeasured=None)
        return metrics

    def _record(self, step: int, metrics: Metrics, on_step: OnStep) -> list[Firing]:
        firings, watched = self.watch.observe(step, metrics)
        metrics |= watched
        self.recorder.metrics(step, metrics)
        for firing in firings:
            logger.warning("watch (%s) after step %d: %s", firing.rule.action, step, firing.message)
            self.recorder.event(firing.event())
        self.watch.warn_of_unseen(step, self.config.steps)
        on_step(step, metrics)
        return firings

    def _roll_back(self, firings: Sequence[Firing]) -> bool:
        """Roll back if a watch rule asks for it and a checkpoint is left. Returns whether the run was rolled back."""
        checkpoints = [int(path.name) for path in self._checkpoints.list()]
        if (target := rollback_target(firings, checkpoints, self._rollbacks)) is None:
            return False
        firing = next(firing for firing in firings if firing.rule.action == "rollback")
        self._checkpoints.drop_after(target)  # first, so that a run killed here rolls back to the same step
        self.recorder.event(firing.event() | {"back_to": target})
        self._rollbacks.append(target)
        self.recorder.close()
        self._restore()
        self._open_record(resume=True)
        return True

    def _due(self, every: int) -> bool:
        return every > 0 and self.completed_steps % every == 0
