"""Metrics, completions and alarms as a run of trackio."""

import secrets
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from typing import Any, Literal

from cooper_rl.observe.sinks import SINKS, Sink, SinkRun, TrackerConfig, require


class TrackioError(Exception):
    """Trackio could not write something in the background."""


@SINKS.register
class Trackio(TrackerConfig):
    """A run of trackio, on this machine or in a Hugging Face Space. TRACKIO_DIR names the local folder."""

    kind: Literal["trackio"] = "trackio"
    space_id: str | None = None
    """A Hugging Face Space such as `owner/name` that the run is sent to. The default is this machine."""
    group: str | None = None
    """Group of runs that this run belongs to, such as the seeds of one experiment."""

    def check(self) -> None:
        require("trackio", "trackio", "trackio", "trackio")

    def open(self, run: SinkRun) -> Sink:
        return TrackioSink(self, run)


class TrackioSink(Sink):
    """Logs to an open run. The library continues a run by its name, so each new name ends in random digits.

    The library writes in the background, twice a second, and reports a failure there as a Python warning only.
    `TrackioError` makes it known to the run at the next step.
    """

    def __init__(self, config: Trackio, run: SinkRun):
        self._config = config
        self._trackio = import_module("trackio")
        new_name = f"{config.shown_name(run).replace('/', '-')}-{secrets.token_hex(2)}"
        name = config.tracked_id(run) or new_name
        with redirect_stdout(sys.stderr):  # the library prints; standard output is for results
            self._run = self._trackio.init(
                project=config.project,
                name=name,
                group=config.group,
                space_id=config.space_id,
                config=run.settings,
                resume="allow",
                embed=False,
            )
        config.remember_id(run, name)

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        self.flush()
        self._run.log(dict(metrics), step=step)

    def rollouts(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        if self._config.wants_rollouts(step):
            columns, data = self._config.table(step, rows)
            self._run.log({"rollouts": self._trackio.Table(columns=columns, data=data)}, step=step)

    def event(self, event: dict[str, Any]) -> None:
        levels = self._trackio.AlertLevel
        level = levels.WARN if event["action"] == "warn" else levels.ERROR
        with redirect_stdout(sys.stderr):
            self._run.alert(event["metric"], event["message"], level=level, step=event["step"])

    def flush(self) -> None:
        """Raises TrackioError if writing has failed in the background since the last call."""
        # Private, but the only place where the library keeps this: the names of the failures it has warned of. It
        # warns of each once; emptied, the set lets it warn again.
        failures = getattr(self._run, "_warned_failures", None)
        if failures:
            names = ", ".join(sorted(failures))
            failures.clear()
            raise TrackioError(f"failed in the background, and a batch may be lost ({names}); see its Python warning")

    def close(self) -> None:
        with redirect_stdout(sys.stderr):
            self._run.finish()
        self.flush()
