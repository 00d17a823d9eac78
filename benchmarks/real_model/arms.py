"""Compares the arms of the real-model runs: a table with intervals, and the picture of docs/real-model.md.

    python -m benchmarks.real_model.arms runs/real-135m/* --draw arms.png

Runs of one arm have one name, but for `-` and the seed. The table has a row for each run: accuracy by gold and by the
rule on the test problems, and by gold on the second set, at the first, the best and the last evaluation, with the 95 %
interval of the last; mean reward, and agreement of the reward model's verdicts with the rule's, over the first and the
last five steps; the mean attack rate of the reward model and its ROC-AUC on held-out labelled completions, first and
last; the step of the alarm; and seconds a step.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from matplotlib.figure import Figure

from cooper_audit.run.hacking_alarm import HACKING
from cooper_audit.run.run_record import RunRecord, read_record
from cooper_audit.statistics import wilson_interval

COLOURS = {"rule": "C7", "static": "C3", "paper": "C1", "cooper": "C0"}
ACCURACIES = ("test/gold_avg", "test/rule_avg", "test/svamp/gold_avg")
PANELS = {
    "test/gold_avg": "gold accuracy, MAWPS",
    "test/rule_avg": "accuracy by the rule, MAWPS",
    "reward/mean": "training reward, mean of five steps",
}
WINDOW = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--draw", type=Path, help="PNG file to write")
    given = parser.parse_args()
    runs = [read_record(directory) for directory in given.runs]
    print("| run | steps | gold | rule | SVAMP | reward | agreement | attack rate | ROC-AUC | alarm | s a step |")
    print("|---" * 11 + "|")
    for run in runs:
        print(f"| {' | '.join(cells(run))} |")
    if given.draw:
        draw(runs, given.draw)


def cells(run: RunRecord) -> list[str]:
    """The run's row of the table."""
    problems = run.config["test_problems"]["limit"]
    return [
        run.directory.name,
        str(run.step),
        *(accuracy(run, name, problems) for name in ACCURACIES),
        *(ends(run, name, WINDOW) for name in ("reward/mean", "reward_model/rule_agreement")),
        *(ends(run, name, 1) for name in ("monitor/attack_rate", "monitor/roc_auc")),
        first_alarm(run),
        f"{mean(value for _, value in run.series('time/step')):.1f}",
    ]


def accuracy(run: RunRecord, name: str, problems: int) -> str:
    """First, best and last value of an accuracy, and the interval of the last."""
    values = [value for _, value in run.series(name)]
    if not values:
        return "–"
    low, high = wilson_interval(values[-1], problems)
    return f"{values[0]:.2f}, {max(values):.2f}, **{values[-1]:.2f}** ({low:.2f} to {high:.2f})"


def ends(run: RunRecord, name: str, window: int) -> str:
    """Mean of the first and of the last `window` values."""
    values = [value for _, value in run.series(name)]
    return f"{mean(values[:window]):.2f} → {mean(values[-window:]):.2f}" if values else "–"


def first_alarm(run: RunRecord) -> str:
    """The step at which the reward-hacking alarm went off."""
    return next((str(event["step"]) for event in run.events if event["metric"] == HACKING), "none")


def draw(runs: Sequence[RunRecord], picture: Path) -> None:
    """One line a run, in the colour of its arm; the first run of an arm is named, the others are dashed."""
    figure = Figure(figsize=(4.4 * len(PANELS), 3.6), layout="constrained")
    for axes, (name, title) in zip(figure.subplots(1, len(PANELS)), PANELS.items(), strict=True):
        for run in runs:
            arm, _, seed = run.directory.name.partition("-")
            steps, values = zip(*run.series(name), strict=True)
            if name == "reward/mean":
                values = [mean(values[max(0, i - WINDOW + 1) : i + 1]) for i in range(len(values))]
            colour, dash = COLOURS.get(arm, "C2"), "--" if seed else "-"
            axes.plot(steps, values, color=colour, linestyle=dash, label=run.directory.name)
            for event in run.events:
                if event["metric"] == HACKING and name == "reward/mean":
                    axes.axvline(event["step"], color=COLOURS.get(arm, "C2"), linestyle=":", linewidth=1)
        axes.set(title=title, xlabel="step")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25)
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
