"""Figures of runs, drawn without a display. A notebook shows a figure that is the value of a cell."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cooper_rl.errors import InputError
from cooper_rl.observe.run_record import ACCURACIES, RunRecord
from cooper_rl.observe.watch.rules import HACKING

AGREEMENT = {
    "reward_model/rule_agreement": "agrees with the rule",
    "reward_model/pair_accuracy_before": "pairs, before the update",
    "reward_model/pair_accuracy_after": "pairs, after the update",
}


def curves(runs: Sequence[RunRecord]) -> Figure:
    """Left the best measure of accuracy that all runs have, right the training reward."""
    figure, (left, right) = _figure(2)
    shared = next((name for name in ACCURACIES if all(run.series(name) for run in runs)), ACCURACIES[-1])
    labels = _labels(runs)
    for axes, name in ((left, shared), (right, "reward/mean")):
        for number, run in enumerate(runs):
            _line(axes, run, name, labels[number], f"C{number}")
            for event in run.events:
                if event["metric"] == HACKING:
                    axes.axvline(event["step"], color=f"C{number}", linestyle=":", linewidth=1.2)
        _finish(axes, name, "step")
    return figure


def agreement(run: RunRecord) -> Figure:
    """The curves of `AGREEMENT` that the run has."""
    figure, (axes,) = _figure(1)
    for number, (name, label) in enumerate(AGREEMENT.items()):
        _line(axes, run, name, label, f"C{number}")
    axes.set_ylim(-0.02, 1.02)
    _finish(axes, "share", "step")
    return figure


def calibration(run: RunRecord, steps: Sequence[int] | None, bins: int) -> Figure:
    """The share of right completions in each bin of the score, with the number of completions below."""
    scored = [
        (row["reward_model"], bool(row.get("gold", row["verdict"] == "correct")))
        for row in run.rollouts(steps)
        if math.isfinite(row.get("reward_model", math.nan))
    ]
    if not scored:
        raise InputError(f"{run.directory}: no completion has a reward model's score in these steps")
    right: list[list[bool]] = [[] for _ in range(bins)]
    for score, is_right in scored:
        right[min(int(score * bins), bins - 1)].append(is_right)
    figure, (axes, counts) = _figure(2)
    filled = [(i, labels) for i, labels in enumerate(right) if labels]
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    axes.plot([(i + 0.5) / bins for i, _ in filled], [sum(one) / len(one) for _, one in filled], marker="o")
    _finish(axes, "share that is right", "score of the reward model")
    counts.bar([(i + 0.5) / bins for i in range(bins)], [len(one) for one in right], width=0.9 / bins)
    _finish(counts, "completions", "score of the reward model")
    return figure


def _figure(panels: int) -> tuple[Figure, Sequence[Axes]]:
    figure = Figure(figsize=(5.2 * panels, 3.4), layout="constrained")
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def _line(axes: Axes, run: RunRecord, name: str, label: str, colour: str) -> None:
    if points := run.series(name):
        axes.plot(*zip(*points, strict=True), label=label, color=colour, linewidth=1.6)


def _finish(axes: Axes, name: str, below: str) -> None:
    axes.set_xlabel(below, fontsize=8)
    axes.set_title(name, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7, frameon=False)


def _labels(runs: Sequence[RunRecord]) -> list[str]:
    """The runs' folder names or, if two are the same, their paths."""
    names = [run.directory.name for run in runs]
    return names if len(set(names)) == len(names) else [str(run.directory) for run in runs]
