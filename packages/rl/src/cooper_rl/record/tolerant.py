"""Sinks that may fail: a run neither ends by them nor waits for them."""

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from cooper_rl.record import SINKS, Sink, SinkConfig, SinkRun

logger = logging.getLogger(__name__)

PAUSE_S = 60.0
"""Seconds between a failure and the next attempt."""
END_S = 30.0
"""Most seconds that the end of a run, or a rollback, waits for a sink to take what it has not got yet."""
MOST_WAITING = {"metrics": 1000, "rollouts": 8, "event": 100, "flush": 1}
"""Most calls of each method that wait for the sink. A step's completions may take megabytes."""


class Tolerant(Sink):
    """A sink whose failures are counted, and logged once, instead of ending the run.

    A thread of its own opens the sink and calls its methods, in the order of the calls here, which return at once.
    After a failure nothing is sent for `PAUSE_S` seconds. Metrics that failed are sent again; completions and events
    are not. What would exceed `MOST_WAITING` is dropped.
    """

    def __init__(self, config: SinkConfig, run: SinkRun):
        self.failures = 0
        """Number of failed attempts to reach the sink."""
        self.dropped = 0
        """Number of steps' metrics, steps' completions and events that the sink does not get."""
        self._name, self._config, self._run = SINKS.kind_of(config), config, run
        self._sink: Sink | None = None
        self._waiting: deque[tuple[str, tuple[Any, ...]]] = deque()
        """Calls that wait. The thread makes the first and then removes it."""
        self._changed = threading.Condition()
        self._closing = self._given_up = False
        self._thread = threading.Thread(target=self._work, name=f"sink-{self._name}", daemon=True)
        self._thread.start()

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        self._put("metrics", step, dict(metrics))

    def rollouts(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        if self._config.takes_rollouts(step):
            self._put("rollouts", step, rows)

    def event(self, event: dict[str, Any]) -> None:
        self._put("event", event)

    def flush(self) -> None:
        self._put("flush")

    def close(self) -> None:
        """Try once more to send what has not been sent, and close the sink, for at most `END_S` seconds."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(END_S)
        with self._changed:
            self._given_up = True
            steps = [arguments[0] for method, arguments in self._waiting if method == "metrics"]
        if steps:
            what = f"{self._name} did not get steps {steps[0]} to {steps[-1]}"
            logger.error("sinks: %s, for which the end waits %g s at most; the run's folder has them", what, END_S)
        elif self._thread.is_alive():
            logger.error("sinks: %s was not closed within %g s", self._name, END_S)

    def _put(self, method: str, *arguments: Any) -> None:
        with self._changed:
            if sum(other == method for other, _ in self._waiting) < MOST_WAITING[method]:
                self._waiting.append((method, arguments))
                self._changed.notify_all()
            elif method != "flush":
                self._drop()

    def _drop(self) -> None:
        self.dropped += 1
        if self.dropped == 1:
            logger.warning(
                "sinks: %s does not get everything; sinks/dropped counts this, and the run's folder has all", self._name
            )

    def _work(self) -> None:
        self._attempt("open", ())
        while (call := self._next()) is not None:
            was_closing, is_done = self._closing, self._attempt(*call)
            with self._changed:
                if is_done or call[0] != "metrics":
                    self._waiting.popleft()
                if not is_done and call[0] in ("rollouts", "event"):
                    self._drop()
            if not is_done and was_closing:
                return
        if self._sink is not None and not self._given_up:
            self._attempt("close", ())

    def _next(self) -> tuple[str, tuple[Any, ...]] | None:
        """The call to make, once there is one; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            return self._waiting[0] if self._waiting and not self._given_up else None

    def _attempt(self, method: str, arguments: tuple[Any, ...]) -> bool:
        """Whether the call was made. If not, the pause is over, or the run ends."""
        try:
            if self._sink is None:
                self._sink = self._config.open(self._run)
            if method != "open":
                getattr(self._sink, method)(*arguments)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a library's network and disk errors have no common base
            self.failures += 1
            if self.failures == 1:
                what = f"{self._name} failed, but the run goes on and tries again; sinks/failures counts this"
                logger.warning("sinks: %s: %s: %s", what, type(error).__name__, error)
            with self._changed:
                self._changed.wait_for(lambda: self._closing, PAUSE_S)
            return False
        return True
