"""Prometheus metrics of the service."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from cooper_rl.service.book import ScoreAsk, StepView
from cooper_rl.service.training import Training

ROWS = (1, 4, 16, 64, 256, 1024, 4096)


class Meters:
    """Counters of one server."""

    def __init__(self) -> None:
        disable_created_metrics()  # a second series for every counter, which nobody asks for
        own = self.registry = CollectorRegistry()
        self.requests = Counter("cooper_requests", "Requests answered", ["method", "path", "status"], registry=own)
        self.pending = Gauge("cooper_requests_pending", "Requests under way", registry=own)
        self.pending_bytes = Gauge("cooper_request_bytes_pending", "Bytes of their bodies", registry=own)
        self.answers = Counter("cooper_answers_scored", "Answers scored", ["phase"], registry=own)
        self.batch_rows = Histogram("cooper_batch_rows", "Answers scored together", buckets=ROWS, registry=own)
        self.batch_seconds = Histogram("cooper_batch_seconds", "Seconds to score a batch", registry=own)
        self.update_seconds = Histogram("cooper_update_seconds", "Seconds of a commit", registry=own)
        self.commits = Counter("cooper_commits", "Steps committed", ["state"], registry=own)
        self.failures = Counter("cooper_failures", "Internal failures", ["what"], registry=own)
        self.version = Gauge("cooper_version", "Updates of the reward model", registry=own)
        self.step = Gauge("cooper_step", "The last step committed", registry=own)
        self.open_answers = Gauge("cooper_open_answers", "Answers of the step under way", registry=own)
        self.update = Gauge("cooper_update", "Metrics of the last update", ["name"], registry=own)

    def scored(self, asks: list[ScoreAsk], seconds: float) -> None:
        """A batch is done."""
        for ask in asks:
            self.answers.labels("train" if ask.train else "eval").inc(ask.rows)
        self.batch_rows.observe(sum(ask.rows for ask in asks))
        self.batch_seconds.observe(seconds)

    def committed(self, view: StepView, seconds: float) -> None:
        """A commit is done, or has failed."""
        self.commits.labels(view.state).inc()
        self.update_seconds.observe(seconds)
        for name, value in view.metrics.items():
            self.update.labels(name).set(value)

    def page(self, training: Training) -> bytes:
        """The page in Prometheus' text format."""
        book = training.book
        self.version.set(training.reward.version)
        self.step.set(training.last_step)
        self.open_answers.set(book.rows if book is not None else 0)
        return generate_latest(self.registry)
