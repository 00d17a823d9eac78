"""Sinks: places that a run's metrics go to besides its folder."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from cooper_base.config.base import Config, Kinds
from cooper_base.errors import InputError, MissingExtraError
from cooper_base.files.durable import sync_tree, writing

logger = logging.getLogger(__name__)

SINKS = Kinds("sink", "cooper_rl.record.trackers", ["check", "open"])
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
    and later ones is replaced. None for a new run."""


class Sink:
    """A place that metrics go to. A subclass implements `metrics`, and any other method that it needs. Its exceptions
    end the run unless it `may_fail`."""

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Receive the metrics of a step; step 0 is the evaluation before the first step."""
        raise NotImplementedError

    def rollouts(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        """Receive a step's completions with their scores and advantages: the lines of `rollouts/`."""

    def event(self, event: dict[str, Any]) -> None:
        """Receive a line of `events.jsonl`: which watch rule fired and what was done about it."""

    def flush(self) -> None:
        """Make everything received so far survive a crash. Called before every checkpoint."""

    def close(self) -> None:
        """Close the sink. Called at the end of the run, and before a rollback opens the sink again."""


class SinkConfig(Config):
    """The settings of a sink. A subclass implements `open`, and `check` if something it needs can be missing."""

    may_fail: ClassVar[bool] = False
    """Whether the run goes on if the open sink, or `open`, raises an exception. They are then called in a thread of
    their own; see `Tolerant`."""

    def check(self) -> None:
        """Raises InputError or MissingExtraError if the sink could not be opened. Called before any model is loaded."""

    def open(self, run: SinkRun) -> Sink:
        """Open the sink for a run, new or resumed."""
        raise NotImplementedError

    def takes_rollouts(self, step: int) -> bool:
        """Whether the sink wants the completions of this step."""
        return True


AnySink = Annotated[SinkConfig, SINKS]


def is_installed(module: str) -> bool:
    spec = find_spec(module)
    return spec is not None and spec.origin is not None  # without a file it is a folder of a tracker, such as `wandb/`


def require(module: str, kind: str, library: str, package: str) -> None:
    """Raises MissingExtraError if the library of a sink is not installed."""
    if not is_installed(module):
        raise MissingExtraError(f"sinks: kind: {kind} needs {library} (the extra `{kind}`): pip install {package}")


@SINKS.register
class TensorBoard(SinkConfig):
    """TensorBoard event files in the folder `tensorboard` of the run. On by default if TensorBoard is installed."""

    kind: Literal["tensorboard"] = "tensorboard"

    def check(self) -> None:
        require("tensorboard", "tensorboard", "TensorBoard", "tensorboard")

    def open(self, run: SinkRun) -> Sink:
        return TensorBoardSink(run.directory / "tensorboard", run.purge_step)


class TensorBoardSink(Sink):
    """TensorBoard hides older values in the files from the purge step on."""

    def __init__(self, directory: Path, purge_step: int | None):
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - settings are checked without torch

        self._directory = directory
        self._writer = SummaryWriter(str(directory), purge_step=purge_step)

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        with writing(self._directory):
            for name, value in metrics.items():
                self._writer.add_scalar(name, value, step)

    def flush(self) -> None:
        with writing(self._directory):
            self._writer.flush()
            sync_tree(self._directory)

    def close(self) -> None:
        try:
            with writing(self._directory):
                self._writer.close()
        except InputError as error:  # the run's own record is complete, or says what it lacks
            logger.error("%s", error)
