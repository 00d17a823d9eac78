"""Where a run's metrics go besides its folder. Each sort of sink is a record in a file of this package."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cooper_rl.config.base import Config
from cooper_rl.config.registry import Kinds

SINKS = Kinds("sink", "cooper_rl.observe.sinks", ["check", "open"])
"""The kinds of `sinks`."""


@dataclass(frozen=True)
class SinkRun:
    """What a sink knows of the run when it opens."""

    directory: Path
    """The run's folder."""
    settings: dict[str, Any]
    """The whole configuration of the run, as plain values."""
    purge_step: int | None
    """The first step that is recorded again, where a resumed run or a rollback goes over steps a second time: what
    the sink holds of this step and later ones no longer counts. None for a new run."""


class Sink:
    """An open sink. One of its own sort gives `metrics`, and as much of the rest as it has a place for.

    What it raises ends the run.
    """

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Take the metrics of a step; step 0 is the evaluation before the first one."""
        raise NotImplementedError

    def rollouts(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        """Take a step's completions with their scores and advantages: the lines of `rollouts/`."""

    def event(self, event: dict[str, Any]) -> None:
        """Take what a watch rule found and what was done: a line of `events.jsonl`."""

    def flush(self) -> None:
        """Make what was taken outlast a crash; called before every checkpoint."""

    def close(self) -> None:
        """Finish; called once, at the end of the run and before a rollback opens the sink again."""


class SinkConfig(Config):
    """The settings of a sink. One of its own kind gives `open`, and `check` where something can be missing."""

    def check(self) -> None:
        """Raises InputError or MissingExtraError, before any model is loaded, where the sink could not be opened."""

    def open(self, run: SinkRun) -> Sink:
        """Open the sink for a run, new or resumed."""
        raise NotImplementedError


AnySink = Annotated[SinkConfig, SINKS]
