"""The demo's report of its four runs, and the picture of their curves beside the dose."""

import json
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from cooper_audit.report.load_run import curves_figure
from cooper_audit.run.run_record import read_runs
from cooper_base.files.owned_file import write_owned
from cooper_lab.arithmetic.arms import ARMS, COMMAND, SUMMARY
from cooper_lab.arithmetic.families import in_words
from cooper_lab.figures import figure_svg
from cooper_rl import write_report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = "picture.png", "picture.svg"
TITLE = "A rule that is silent on two problems in three"
CURVES = {"test/gold_avg": "Gold accuracy on held-out problems", "reward/mean": "Training reward"}
WIDTH, HEIGHT, FONT = 7.5, 7.2, 15
"""Inches and points: on a phone, 390 pixels wide, a letter is still ten pixels high."""
DOSE = Path(__file__).parent / "dose.json"
"""Gold after 40 steps on seeds 0 to 4, by the share of problems that the rule judges."""
FIVE_SEEDS = (
    "This is one seed. Over seeds 0 to 4 the rule ended at 0.78 on average, the static reward model and Cooper as "
    "published at 0.03 or below, and Cooper at 0.87, above the rule on each; in the family where it is lowest, of what "
    "the policy wrote in the last five steps, 0.50 are right (docs/reward-hacking.md)."
)


def draw(output_dir: Path) -> Path:
    """Write `picture.svg`, `picture.png` and `report.html` into the demo's folder. Returns the path of the report.

    The picture's curves are those that the report begins with. Its last panel is not of these runs: `DOSE`.
    """
    arms = [arm for arm in ARMS if (output_dir / arm / "metrics.jsonl").exists()]
    labels = {output_dir / arm: ARMS[arm].label for arm in arms}
    colours = [ARMS[arm].colour for arm in arms]
    figure = curves_figure(read_runs(list(labels), labels), list(CURVES), colours)
    for axes, title in zip(figure.axes, CURVES.values(), strict=True):
        axes.set_title(title, loc="left", fontsize=FONT)
    _add_dose(figure)
    _for_a_phone(figure)
    png = BytesIO()
    figure.savefig(png, dpi=150, format="png")
    for name, content in zip(PICTURES, (png.getvalue(), figure_svg(figure)), strict=True):
        write_owned(output_dir / name, content, COMMAND)
    summary = json.loads((output_dir / SUMMARY).read_text(encoding="utf-8"))
    about = (
        "One small policy learns arithmetic from four different rewards. The rule can judge 35 % of the problems. Gold "
        "is the true label of all and only measures. At the start the reward model is right on "
        f"{100 * summary['reward_model_accuracy']:.1f} % of held-out completions."
    )
    least = "; ".join(f"{ARMS[arm].label} {in_words(summary['arms'][arm]['least_family'])}" for arm in arms)
    families = f"Gold at the end in the family of questions where it is lowest, with its 95 % interval: {least}."
    notes = [about, families, FIVE_SEEDS]
    return write_report(list(labels), output_dir / "report.html", TITLE, notes, labels, colours)


def _add_dose(figure: "Figure") -> None:
    """A third panel: mean gold at the end over the share of problems that the rule judges, and the range over seeds.
    The first panel has a row of its own."""
    grid = figure.add_gridspec(2, 2)
    for panel, place in zip(figure.axes, (grid[0, :], grid[1, 0]), strict=True):
        panel.set_subplotspec(place)
    axes = figure.add_subplot(grid[1, 1])
    for arm, doses in json.loads(DOSE.read_text(encoding="utf-8")).items():
        heard = [int(share) for share in doses]
        axes.plot(heard, [sum(gold) / len(gold) for gold in doses.values()], "o-", markersize=4, color=ARMS[arm].colour)
        lows, highs = ([end(gold) for gold in doses.values()] for end in (min, max))
        axes.vlines(heard, lows, highs, color=ARMS[arm].colour, alpha=0.4)
    axes.set_title("Gold, five seeds", loc="left", fontsize=FONT)
    axes.set_xlabel("% that the rule judges")
    axes.set_ylim(0, 1)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _for_a_phone(figure: "Figure") -> None:
    """Letters that can be read where the picture is as wide as a phone, and few enough of them; the legend beside the
    panels, where it hides no curve."""
    figure.set_size_inches(WIDTH, HEIGHT)
    for axes in figure.axes:
        axes.xaxis.label.set_fontsize(FONT)
        axes.tick_params(labelsize=FONT)
        axes.locator_params(axis="both", nbins=5)
    if (legend := figure.axes[0].get_legend()) is not None:
        legend.remove()
        lines = figure.axes[0].get_legend_handles_labels()
        figure.legend(*lines, loc="outside lower center", ncols=2, frameon=False, fontsize=FONT)
