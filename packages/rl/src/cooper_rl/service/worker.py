"""The thread that owns the reward: it handles requests in order of arrival and scores neighbours in one batch."""

import logging
import threading
import time
from collections import Counter as Counted
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from cooper_audit.run.hacking_alarm import HACKING
from cooper_base.config.user_functions import exits_are_faults
from cooper_base.files.durable import append_line
from cooper_rl.reward.scored import Scored, Updated
from cooper_rl.service.config import ServerConfig
from cooper_rl.service.requests import Refusal, ScoreAsk, reply_to
from cooper_rl.service.training import Training

logger = logging.getLogger(__name__)

ROWS = (1, 4, 16, 64, 256, 1024, 4096)
RECOVER_S = 5.0
"""Seconds between attempts to recover the state after a failure."""


class Meters:
    def __init__(self, training: Training) -> None:
        disable_created_metrics()  # a second series for every counter, which nobody asks for
        own = self.registry = CollectorRegistry()
        self.requests = Counter("cooper_requests", "Requests answered", ["method", "path", "status"], registry=own)
        self.pending = Gauge("cooper_requests_pending", "Requests under way", registry=own)
        self.pending_bytes = Gauge("cooper_request_bytes_pending", "Bytes of their bodies", registry=own)
        self.answers = Counter("cooper_answers_scored", "Answers scored", ["phase"], registry=own)
        self.verdicts = Counter("cooper_verdicts", "Verdicts on answers scored", ["verdict"], registry=own)
        self.batch_rows = Histogram("cooper_batch_rows", "Answers scored together", buckets=ROWS, registry=own)
        self.batch_seconds = Histogram("cooper_batch_seconds", "Seconds to score a batch", registry=own)
        self.update_seconds = Histogram("cooper_update_seconds", "Seconds of a commit", registry=own)
        self.commits = Counter("cooper_commits", "Steps committed", ["state"], registry=own)
        self.failures = Counter("cooper_failures", "Internal failures", ["what"], registry=own)
        self.update = Gauge("cooper_update", "Metrics of the last update", ["name"], registry=own)
        version = Gauge("cooper_version", "Updates of the reward model", registry=own)
        version.set_function(lambda: training.reward.version)
        step = Gauge("cooper_step", "The last step committed", registry=own)
        step.set_function(lambda: training.reward.last_step)
        signs = Gauge("cooper_reward_hacking_signs", "Signs of reward hacking at the last step", registry=own)
        signs.set_function(lambda: len(training.signs))
        answers = Gauge("cooper_open_answers", "Answers of the step under way", registry=own)
        answers.set_function(lambda: training.ledger.open_step.rows if training.ledger.open_step is not None else 0)

    def scored(self, asks: Sequence[ScoreAsk], replies: Sequence[Scored], seconds: float) -> None:
        for ask in asks:
            self.answers.labels("train" if ask.train else "eval").inc(ask.rows)
        self.batch_rows.observe(sum(ask.rows for ask in asks))
        self.batch_seconds.observe(seconds)
        verdicts = Counted(said for reply in replies for group in reply.verdicts for said in group)
        for verdict, count in verdicts.items():
            self.verdicts.labels(verdict).inc(count)

    def committed(self, view: Updated, seconds: float) -> None:
        self.commits.labels(view.state).inc()
        self.update_seconds.observe(seconds)
        for name, value in view.metrics.items():
            self.update.labels(name).set(value)


@dataclass(frozen=True)
class Job:
    """A request to score or a function to call, and the future for its result."""

    work: ScoreAsk | Callable[[Future[Any]], None]
    future: Future[Any] = field(default_factory=Future)


class Worker:
    """First come, first served, so the scoring of a step waits for the commit of the previous one."""

    def __init__(self, training: Training, config: ServerConfig, meters: Meters) -> None:
        self.training = training
        self._config, self._meters = config, meters
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._commit_at: float | None = None
        self._recover_at = 0.0
        self._thread = threading.Thread(target=self._run, name="reward", daemon=True)
        self._thread.start()

    def score(self, ask: ScoreAsk) -> "Future[Scored]":
        return self._submit(ask)

    def commit(self, step: int, keep: Sequence[str] | None, expected: int | None, run: str | None) -> "Future[Updated]":
        """Commit a step; the future is done before training, once it is journaled."""
        return self._submit(lambda future: self._commit(future, step, keep, expected, run))

    def call(self, function: Callable[[], Any]) -> "Future[Any]":
        return self._submit(lambda future: future.set_result(function()))

    def stop(self) -> None:
        """Finish all jobs, write a checkpoint, and end."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()
        if self.training.fault is None:
            self.training.close()

    def _submit(self, work: ScoreAsk | Callable[[Future[Any]], None]) -> Future[Any]:
        job = Job(work)
        with self._changed:
            self._jobs.append(job)
            self._changed.notify()
        return job.future

    def _run(self) -> None:
        while (jobs := self._next()) is not None:
            self._do([job for job in jobs if job.future.set_running_or_notify_cancel()])

    def _do(self, jobs: Sequence[Job]) -> None:
        """Do the jobs of a batch. A failure concerns its request alone, unless it left the reward between two steps."""
        try:
            with exits_are_faults("a part of the reward"):
                self._recover_if_needed()
                self._work(jobs)
        except Exception as error:  # noqa: BLE001 - logged, and told to the requests
            if len(jobs) > 1 and self.training.fault is None:
                for job in jobs:  # one of them has failed
                    if not job.future.done():
                        self._do([job])
                return
            told = reply_to(error, "a request failed")
            for job in jobs:
                if not job.future.done():
                    job.future.set_exception(told)

    def _recover_if_needed(self) -> None:
        """Go back to the last step if a failure left the reward between two. Raises Refusal (503) if that fails."""
        if self.training.fault is None:
            return
        self._commit_at = None
        if time.monotonic() >= self._recover_at:
            try:
                self.training.recover()
                return
            except Exception:
                logger.exception("the state could not be recovered from %s", self.training.history.root)
                self._recover_at = time.monotonic() + RECOVER_S
        why = f"the server could not recover its state ({self.training.fault}); it tries again every {RECOVER_S:g} s"
        raise Refusal(503, why, {"Retry-After": f"{RECOVER_S:g}"})

    def _work(self, jobs: Sequence[Job]) -> None:
        if not jobs:
            self._commit_if_due()
        elif isinstance(jobs[0].work, ScoreAsk):
            self._score(jobs)
        else:
            jobs[0].work(jobs[0].future)

    def _score(self, jobs: Sequence[Job]) -> None:
        asks = [job.work for job in jobs if isinstance(job.work, ScoreAsk)]
        start = time.perf_counter()
        replies = self.training.score(asks)
        done = [ask for ask, reply in zip(asks, replies, strict=True) if isinstance(reply, Scored)]
        scored = [reply for reply in replies if isinstance(reply, Scored)]
        self._meters.scored(done, scored, time.perf_counter() - start)
        for job, reply in zip(jobs, replies, strict=True):
            if isinstance(reply, Exception):
                job.future.set_exception(reply)
            else:
                job.future.set_result(reply)
        policies = [ask.policy for ask in done if ask.train and ask.policy is not None]
        if not policies or self.training.ledger.open_step is None:
            return
        if (idle_s := policies[-1].idle_s) is not None:
            self._commit_at = time.monotonic() + idle_s
        elif self.training.arrived >= (policies[-1].rows or 0):
            self._commit_at = time.monotonic()
            self._commit_if_due()

    def _commit_if_due(self) -> None:
        """For requests without a step."""
        if self._commit_at is None or time.monotonic() < self._commit_at:
            return
        self._commit_at = None
        if (opened := self.training.ledger.open_step) is not None:
            try:
                self._commit(Future(), opened.number)
            except Refusal as error:  # a full disk; the next answer tries again
                self._meters.failures.labels("commit").inc()
                logger.error("step %d is not committed: %s", opened.number, error)

    def _commit(self, future: "Future[Updated]", step: int, *request: Any) -> None:
        start = time.perf_counter()
        if self.training.commit(future.set_result, step, *request):
            self._commit_at = None
            self._meters.committed(self.training.steps[step], time.perf_counter() - start)
            self._warn_of_hacking(step)
            self._checkpoint_if_due()

    def _warn_of_hacking(self, step: int) -> None:
        """Log the alarm and append it to `events.jsonl`, at the first of several steps with signs."""
        signs = self.training.signs
        if not signs or self.training.alarm.since != step:
            return
        message = f"{HACKING} since step {step}: {'; '.join(signs)}"
        logger.warning(message)
        event = {"step": step, "metric": HACKING, "action": "warn", "since": step, "values": [float(len(signs))]}
        try:
            append_line(self.training.history.root / "events.jsonl", {**event, "message": message})
        except OSError as error:  # a full disk; the alarm is in the log and in the metrics
            self._meters.failures.labels("event").inc()
            logger.error("events.jsonl: %s", error)

    def _checkpoint_if_due(self) -> None:
        newest, every = self.training.history.checkpoints()[-1], self._config.checkpoint_every
        if not every or self.training.reward.last_step < newest + every:
            return
        try:
            self.training.checkpoint()
        except Refusal as error:
            self._meters.failures.labels("checkpoint").inc()
            logger.error("no checkpoint of step %d: %s", self.training.reward.last_step, error)

    def _next(self) -> list[Job] | None:
        """The next job, with the following ones that fit into its batch; empty when a commit or recovery may be due."""
        with self._changed:
            while not self._jobs:
                if self._stopping:
                    return None
                due = self._commit_at if self.training.fault is None else self._recover_at
                wait = None if due is None else due - time.monotonic()
                if wait is not None and wait <= 0:
                    return []
                self._changed.wait(wait)
            batch = [self._jobs.popleft()]
            while self._jobs and self._fits(batch, self._jobs[0]):
                batch.append(self._jobs.popleft())
            return batch

    def _fits(self, batch: Sequence[Job], job: Job) -> bool:
        asks, ask = [queued.work for queued in batch if isinstance(queued.work, ScoreAsk)], job.work
        if not asks or not isinstance(ask, ScoreAsk) or any(earlier.names & ask.names for earlier in asks):
            return False
        # Answers after the one that commits the step belong to the next version.
        policies = [earlier.policy for earlier in asks if earlier.policy]
        left = [policy.rows - self.training.arrived for policy in policies if policy.rows is not None]
        return sum(scored.rows for scored in [*asks, ask]) <= min([self._config.batch_rows, *left[-1:]])
