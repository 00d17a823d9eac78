"""Keeps a run going when a sink fails: a server that does not answer, a full disk."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from cooper_rl.observe.sinks import SINKS, Sink, SinkConfig, SinkRun

PAUSE_S = 60.0
"""Seconds without another attempt after a failure. A server that does not answer can hold up each attempt for long."""

logger = logging.getLogger(__name__)


class Tolerant(Sink):
    """A sink whose failures are counted, and logged once, instead of ending the run.

    After a failure nothing is sent for `PAUSE_S` seconds. The metrics of that time are kept and sent afterwards;
    completions and events are not. `clock` returns seconds.
    """

    def __init__(self, config: SinkConfig, run: SinkRun, clock: Callable[[], float] = time.monotonic):
        self.failures = 0
        """Attempts to reach the sink that failed."""
        self._name = SINKS.kind_of(config)
        self._open = lambda: config.open(run)
        self._sink: Sink | None = None
        self._clock = clock
        self._pause_until = -float("inf")
        self._unsent: list[tuple[int, dict[str, float]]] = []
        self._attempt(lambda sink: None)

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        """See `Sink`."""
        self._unsent.append((step, dict(metrics)))
        self._attempt(self._send)

    def rollouts(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        """See `Sink`."""
        self._attempt(lambda sink: sink.rollouts(step, rows))

    def event(self, event: dict[str, Any]) -> None:
        """See `Sink`."""
        self._attempt(lambda sink: sink.event(event))

    def flush(self) -> None:
        """See `Sink`."""
        self._attempt(lambda sink: sink.flush())

    def close(self) -> None:
        """Try once more to send what is left, and close the sink."""
        self._pause_until = -float("inf")
        self._attempt(self._send)
        if self._sink is not None:
            self._attempt(lambda sink: sink.close())
        if self._unsent:
            steps = f"{self._unsent[0][0]} to {self._unsent[-1][0]}"
            logger.error("sinks: %s did not get steps %s; the run's folder has them", self._name, steps)

    def _send(self, sink: Sink) -> None:
        while self._unsent:
            sink.metrics(*self._unsent[0])
            del self._unsent[0]

    def _attempt(self, work: Callable[[Sink], None]) -> None:
        if self._clock() < self._pause_until:
            return
        try:
            if self._sink is None:
                self._sink = self._open()
            work(self._sink)
        except Exception as error:  # noqa: BLE001 - a library's network and disk errors have no common base
            self.failures += 1
            self._pause_until = self._clock() + PAUSE_S
            if self.failures == 1:
                logger.warning(
                    "sinks: %s failed, but the run goes on and tries again; sinks/failures counts this: %s: %s",
                    self._name,
                    type(error).__name__,
                    error,
                )
