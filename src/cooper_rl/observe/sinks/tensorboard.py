"""Metrics as TensorBoard event files in the run's folder."""

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from cooper_rl.errors import MissingExtraError
from cooper_rl.observe.sinks import SINKS, Sink, SinkConfig, SinkRun
from cooper_rl.persist.durable import sync_tree


@SINKS.register
class TensorBoard(SinkConfig):
    """TensorBoard event files in the folder `tensorboard` of the run. On by default if TensorBoard is installed."""

    kind: Literal["tensorboard"] = "tensorboard"

    @property
    def installed(self) -> bool:
        """Whether TensorBoard (the extra `tensorboard`) is installed."""
        return find_spec("tensorboard") is not None

    def check(self) -> None:
        if not self.installed:
            raise MissingExtraError(
                "sinks: kind: tensorboard needs TensorBoard (the extra `tensorboard`): pip install tensorboard"
            )

    def open(self, run: SinkRun) -> Sink:
        return TensorBoardSink(run.directory / "tensorboard", run.purge_step)


class TensorBoardSink(Sink):
    """Writes scalars. TensorBoard hides older values in the files from the purge step on."""

    def __init__(self, directory: Path, purge_step: int | None):
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - settings are checked without torch

        self._directory = directory
        self._writer = SummaryWriter(str(directory), purge_step=purge_step)

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def flush(self) -> None:
        self._writer.flush()
        sync_tree(self._directory)

    def close(self) -> None:
        self._writer.close()
