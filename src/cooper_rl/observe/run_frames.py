"""`load_run`: a run's folder as pandas frames and matplotlib figures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cooper_rl.errors import MissingExtraError
from cooper_rl.observe.run_record import RunRecord, read_record
from cooper_rl.observe.run_status import RunStatus, State, status_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

MEASURED = ("test/", "monitor/")
"""The beginnings of the metrics that an evaluation on held-out rows records."""


@dataclass(frozen=True)
class Run:
    """A run as it was on disk when `load_run` read it. The frames of completions and pairs are read on first use."""

    record: RunRecord
    """The files without pandas."""

    @property
    def config(self) -> Mapping[str, Any]:
        """Every setting of the run."""
        return self.record.config

    @property
    def state(self) -> State:
        """`running`, `finished`, `stopped` by a watch rule, or `interrupted`. Decided anew at each use."""
        return self.status.state

    @property
    def status(self) -> RunStatus:
        """The state with its reason, and the pace."""
        return status_of(self.record)

    @cached_property
    def metrics(self) -> "DataFrame":
        """One row for each step, indexed by `step`, with the metrics as columns; NaN where a step has no value."""
        return _frame(self.record.metrics, index="step")

    @cached_property
    def evaluations(self) -> "DataFrame":
        """The rows and columns of `metrics` that were measured on held-out problems and completions."""
        columns = [name for name in self.metrics.columns if name.startswith(MEASURED)]
        return self.metrics.loc[:, columns].dropna(how="all")

    @cached_property
    def events(self) -> "DataFrame":
        """One row for each watch rule that fired or rolled the run back."""
        return _frame(self.record.events)

    @cached_property
    def rollouts(self) -> "DataFrame":
        """One row for each recorded completion: step, problem, text, every score, verdict, advantage."""
        return _frame(self.record.rollouts())

    @cached_property
    def pairs(self) -> "DataFrame":
        """One row for each pair that the reward model learned from, with its logits before and after."""
        return _frame(self.record.pairs())

    def rollouts_of(self, *steps: int) -> "DataFrame":
        """The rows of `rollouts` of these steps. Reads only their files."""
        return _frame(self.record.rollouts(steps))

    def gallery(self, size: int = 20) -> "DataFrame":
        """The completions with the highest reward among those that gold, or else the rule, calls wrong."""
        wrong = (row for row in self.record.rollouts() if not row.get("gold", row["verdict"] == "correct"))
        best = sorted((row for row in wrong if math.isfinite(row["reward"])), key=lambda row: -row["reward"])
        return _frame(best[:size])

    def plot_curves(self, *others: "Run") -> "Figure":
        """Accuracy and training reward by step, of this run and the `others`, with marks where the alarm went off."""
        from cooper_rl.observe.run_plots import curves  # noqa: PLC0415 - matplotlib is slow to import

        return curves([run.record for run in (self, *others)])

    def plot_agreement(self) -> "Figure":
        """Agreement of the reward model with the rule, and its accuracy on its pairs, by step."""
        from cooper_rl.observe.run_plots import agreement  # noqa: PLC0415

        return agreement(self.record)

    def plot_calibration(self, steps: Sequence[int] | None = None, bins: int = 10) -> "Figure":
        """How often completions of each score are right according to gold, or else the rule.

        `steps` are all by default. Raises InputError if no completion has a score of a reward model.
        """
        from cooper_rl.observe.run_plots import calibration  # noqa: PLC0415

        return calibration(self.record, steps, bins)


def load_run(path: str | Path) -> Run:
    """Read the folder of a run, finished or not.

    Raises InputError if it holds no run, and MissingExtraError if pandas is missing.
    """
    _pandas()
    return Run(read_record(Path(path)))


def _frame(rows: Any, index: str | None = None) -> "DataFrame":
    frame = _pandas().DataFrame(list(rows))
    return frame.set_index(index) if index in frame.columns else frame


def _pandas() -> Any:
    try:
        import pandas  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError("load_run needs pandas (the extra `notebook`): pip install pandas") from error
    return pandas
