"""The demo's picture: gold test accuracy and training reward, with one line for each of the four runs."""

import json
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from cooper_rl.arena.arms import ARMS
from cooper_rl.observe.record import read_metrics
from cooper_rl.observe.report.figures import figure_svg

LABELS = {"rule": "rule", "static": "static reward model", "paper": "Cooper, paper preset", "cooper": "Cooper"}
COLOURS = {"rule": "#6b7280", "static": "#d9480f", "paper": "#1c7ed6", "cooper": "#2b8a3e"}
PANELS = [("Gold accuracy on test problems", "test/gold_avg"), ("Training reward", "reward/mean")]


def draw(output_dir: Path) -> Path:
    """Write `picture.svg`, `picture.png` and `report.html` into the demo's folder. Returns the path of the report."""
    figure = demo_figure(output_dir)
    figure.savefig(output_dir / "picture.png", dpi=150)
    svg = figure_svg(figure)
    (output_dir / "picture.svg").write_text(svg, encoding="utf-8")
    return _write_page(output_dir, svg)


def demo_figure(output_dir: Path) -> Figure:
    """Two panels over the steps, with one line per arm."""
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    for axes, (title, metric) in zip(figure.subplots(1, 2), PANELS, strict=True):
        for arm in ARMS:
            points = [(row["step"], row[metric]) for row in read_metrics(output_dir / arm) if metric in row]
            if points:
                axes.plot(*zip(*points, strict=True), label=LABELS[arm], color=COLOURS[arm], linewidth=1.8)
        axes.set_title(title, fontsize=11, loc="left")
        axes.set_xlabel("step")
        axes.set_ylim(0, 1)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=9)
    return figure


def _write_page(output_dir: Path, svg: Markup) -> Path:
    environment = Environment(loader=PackageLoader("cooper_rl.arena"), autoescape=True, undefined=StrictUndefined)
    template = environment.get_template("demo.html.j2")
    arms = [arm for arm in ARMS if (output_dir / arm / "report.html").exists()]
    summary = json.loads((output_dir / "summary.json").read_text(encoding="utf-8"))
    page = template.render(svg=svg, arms=arms, labels=LABELS, summary=summary)
    target = output_dir / "report.html"
    target.write_text(page, encoding="utf-8")
    return target
