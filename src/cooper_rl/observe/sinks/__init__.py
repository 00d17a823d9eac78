"""Sinks: places that a run's metrics go to besides its folder. Each kind of sink has a file in this package."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from cooper_rl.config.base import Config, Kinds

SINKS = Kinds("sink", "cooper_rl.observe.sinks", ["check", "open"])
"""The kinds of `sinks`."""


@dataclass(frozen=True)
class SinkRun:
    """What a sink knows about the run when it opens."""

    directory: Path
    """The run's folder."""
    settings: dict[str, Any]
    """The whole configuration of the run, as plain values."""
    purge_step: int | None
    """The first step that is recorded again after a resume or a rollback. Whatever the sink already holds for this step
    and later ones no longer counts. None for a new run."""


class Sink:
    """An open sink. A subclass implements `metrics`, and those other methods that it has a use for.

    An exception that it raises ends the run, unless its configuration says `may_fail`.
    """

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Take the metrics of a step; step 0 is the evaluation before the first one."""
        raise NotImplementedError

    def rollouts(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        """Take a step's completions with their scores and advantages: the lines of `rollouts/`."""

    def event(self, event: dict[str, Any]) -> None:
        """Take a line of `events.jsonl`: what a watch rule found and what was done about it."""

    def flush(self) -> None:
        """Make everything taken so far survive a crash. Called before every checkpoint."""

    def close(self) -> None:
        """Close the sink. Called at the end of the run, and before a rollback opens the sink again."""


class SinkConfig(Config):
    """The settings of a sink. A subclass implements `open`, and `check` if something it needs can be missing."""

    may_fail: ClassVar[bool] = False
    """Whether the run goes on if the open sink, or `open`, raises an exception; see `Tolerant`."""

    def check(self) -> None:
        """Raises InputError or MissingExtraError if the sink could not be opened. Called before any model is loaded."""

    def open(self, run: SinkRun) -> Sink:
        """Open the sink for a run, new or resumed."""
        raise NotImplementedError


AnySink = Annotated[SinkConfig, SINKS]
