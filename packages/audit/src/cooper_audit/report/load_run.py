"""`load_run`: a run's folder as pandas frames and figures, for notebooks; and curves of several runs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cooper_audit.report.palette import COLOURS
from cooper_audit.run.run_record import ACCURACIES, RunRecord, RunStatus, State, is_right, read_record, status_of
from cooper_audit.run.verdict import verdict_of
from cooper_base.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

AGREEMENT = {
    "reward_model/rule_agreement": "agrees with the rule",
    "reward_model/pair_accuracy_before": "pairs, before the update",
    "reward_model/pair_accuracy_after": "pairs, after the update",
}


@dataclass(frozen=True)
class Run:
    """A run as it was on disk when `load_run` read it. The frames of completions and pairs are read on first use."""

    record: RunRecord
    """The files without pandas."""

    def __repr__(self) -> str:
        steps = f"{self.record.step} of {self.record.steps} steps" if self.record.steps else f"{self.record.step} steps"
        return f"<run {str(self.record.directory)!r}: {self.state}, {steps}>"

    @property
    def config(self) -> Mapping[str, Any]:
        return self.record.config

    @property
    def state(self) -> State:
        """`running`, `finished`, `stopped` by a watch rule, `ended` by a callback, or `interrupted`. Read from disk at
        every use."""
        return self.status.state

    @property
    def status(self) -> RunStatus:
        return status_of(self.record)

    @cached_property
    def metrics(self) -> "DataFrame":
        """One row for each step, indexed by `step`, with the metrics as columns; NaN where a step has no value."""
        return _frame(self.record.metrics, index="step")

    @cached_property
    def evaluations(self) -> "DataFrame":
        """The rows and columns of `metrics` that were measured on held-out problems and completions."""
        columns = [name for name in self.metrics.columns if name.startswith(("test/", "monitor/"))]
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
        """The completions with the highest reward among those that gold, or the rule if there is no gold, calls wrong.

        Without gold, completions on which the rule is silent are left out.
        """
        wrong = (row for row in self.record.rollouts() if is_right(row) is False and math.isfinite(row["reward"]))
        return _frame(sorted(wrong, key=lambda row: -row["reward"])[:size])

    def plot_curves(self, *others: "Run") -> "Figure":
        """Training reward and the best accuracy that all runs have, by step, with marks where the alarm went off."""
        runs = [run.record for run in (self, *others)]
        if len({run.label for run in runs}) < len(runs):
            runs = [replace(run, label=str(run.directory)) for run in runs]
        shared = next((name for name in ACCURACIES if all(run.series(name) for run in runs)), ACCURACIES[-1])
        figure = curves_figure(runs, names := (shared, "reward/mean"))
        for axes, name in zip(figure.axes, names, strict=True):
            axes.set_title(name, fontsize=11)
        return figure

    def plot_agreement(self) -> "Figure":
        """Agreement of the reward model with the rule, and its accuracy on its pairs, by step."""
        figure, (axes,) = _figure(1, 5.2, 3.4)
        for (name, label), colour in zip(AGREEMENT.items(), COLOURS, strict=False):
            if points := self.record.series(name):
                axes.plot(*zip(*points, strict=True), label=label, color=colour, linewidth=1.6)
        axes.set_ylim(-0.02, 1.02)
        _finish(axes, "share", "step")
        return figure

    def plot_calibration(self, steps: Sequence[int] | None = None, bins: int = 10) -> "Figure":
        """How often completions of each score are right, among those that gold, or the rule if there is no gold, has
        judged.

        Raises InputError if none of them has a score of a reward model.
        """
        right: list[list[bool]] = [[] for _ in range(bins)]
        scored = 0
        for row in self.record.rollouts(steps):
            if math.isfinite(score := row.get("reward_model", math.nan)):
                scored += 1
                if (label := is_right(row)) is not None:
                    right[min(int(score * bins), bins - 1)].append(label)
        if not any(right):
            why = "was judged by gold or the rule" if scored else "has a reward model's score"
            raise InputError(f"{self.record.directory}: no completion {why} in these steps")
        figure, (axes, counts) = _figure(2, 10.4, 3.4)
        centres = [(i + 0.5) / bins for i in range(bins)]
        filled = [(centre, sum(labels) / len(labels)) for centre, labels in zip(centres, right, strict=True) if labels]
        axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        axes.plot(*zip(*filled, strict=True), marker="o", color=COLOURS[0])
        _finish(axes, "share that is right", "score of the reward model")
        counts.bar(centres, [len(labels) for labels in right], width=0.9 / bins, color=COLOURS[0])
        judged = sum(map(len, right))
        share = "" if judged == scored else f" that were judged, {judged / scored:.0%} of all"
        _finish(counts, f"completions{share}", "score of the reward model")
        return figure


def load_run(path: str | Path) -> Run:
    """Read a run's folder, finished or not. Raises InputError if it holds no run, MissingExtraError without pandas."""
    _pandas()
    return Run(read_record(Path(path)))


def curves_figure(runs: Sequence[RunRecord], metrics: Sequence[str], colours: Sequence[str] = COLOURS) -> "Figure":
    """A panel for each metric, with a line for each run and a triangle where the reward-hacking alarm went off."""
    figure, panels = _figure(len(metrics), 10, 3.8)
    alarms = [verdict_of(run).alarm_at for run in runs]
    for axes, name in zip(panels, metrics, strict=True):
        lines = [run.series(name) for run in runs]
        for run, points, alarm, colour in zip(runs, lines, alarms, cycle(colours), strict=False):
            if points:
                steps, values = zip(*points, strict=True)
                axes.plot(steps, values, label=run.label, color=colour, linewidth=1.8)
                if alarm is not None and steps[0] <= alarm <= steps[-1]:
                    axes.plot(alarm, np.interp(alarm, steps, values), "^", color=colour, markersize=8, mec="white")
        axes.set_xlabel("step")
        axes.locator_params(axis="x", integer=True)
        if all(0 <= value <= 1 for points in lines for _, value in points):
            axes.set_ylim(0, 1)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    if any(alarm is not None for alarm in alarms):
        figure.axes[0].plot([], [], "^", color="#59616c", markersize=7, label="the alarm goes off")
    if figure.axes[0].get_legend_handles_labels()[0]:
        figure.axes[0].legend(frameon=False, fontsize=9)
    return figure


def _figure(panels: int, width: float, height: float) -> "tuple[Figure, Sequence[Axes]]":
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow to import

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            """What a notebook shows. It knows matplotlib's own figures only once a cell has drawn with pyplot."""
            self.savefig(picture := BytesIO(), format="png")
            return picture.getvalue()

    figure = ShownFigure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def _finish(axes: "Axes", name: str, below: str) -> None:
    axes.set_xlabel(below, fontsize=8)
    axes.set_title(name, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7, frameon=False)


def _frame(rows: Any, index: str | None = None) -> "DataFrame":
    frame = _pandas().DataFrame(list(rows))
    return frame.set_index(index) if index in frame.columns else frame


def _pandas() -> Any:
    try:
        import pandas  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError("load_run needs pandas (the extra `notebook`): pip install pandas") from error
    return pandas
