"""The arena's page: the ranking, gold by hole and design, and what each run cost."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cooper_audit.report.report import REPORT_FILE
from cooper_base.files.owned_file import write_owned
from cooper_lab.arena.cells import COMMAND
from cooper_lab.arena.measures import is_hacked
from cooper_lab.arithmetic.families import in_words
from cooper_lab.figures import figure_svg

INK = "#8a94a3"
"""The colour of text and axes, readable on a light and on a dark page."""


def write_page(
    target: Path, summary: Mapping[str, Any], results: Sequence[Mapping[str, Any]], about: Mapping[str, str]
) -> None:
    """Write one page. `summary` is `summary.json`; `about` has a line for designs and holes.

    The page holds everything it shows. A hole leads to the report of its runs if that is there, `HOLE/report.html`
    beside the page.
    """
    environment = Environment(
        loader=PackageLoader("cooper_lab.arena"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"gold": _colour, "share": _share, "interval": _interval, "least": in_words}
    holes = list(dict.fromkeys(row["hole"] for row in summary["table"]))
    designs = [row["design"] for row in summary["ranking"]["designs"]]
    designs += [name for name in dict.fromkeys(row["design"] for row in summary["table"]) if name not in designs]
    strokes = strokes_of(designs)
    hacked = Counter((result["hole"], result["design"]) for result in results if is_hacked(result))
    page = environment.get_template("arena.html.j2").render(
        summary=summary,
        about=about,
        holes=holes,
        designs=designs,
        cells={(row["hole"], row["design"]): row for row in summary["table"]},
        curves={hole: figure_svg(curves(results, hole, strokes)) for hole in holes},
        reports={
            hole: f"{quote(hole)}/{REPORT_FILE}" for hole in holes if (target.parent / hole / REPORT_FILE).exists()
        },
        strokes=strokes,
        hacked=hacked,
        hacked_designs={design for _, design in hacked},
    )
    write_owned(target, page, COMMAND)


def curves(results: Sequence[Mapping[str, Any]], hole: str, strokes: Mapping[str, Mapping[str, str]]) -> Figure:
    """Gold over the steps in one hole: a line for each design, the mean of its runs. Earlier lines are wider, so that
    one shows on both sides of another that lies on it.
    """
    figure = Figure(figsize=(3.4, 2.4), layout="constrained", facecolor="none")
    axes = figure.add_subplot()
    drawn = [name for name in strokes if any((r["hole"], r["design"]) == (hole, name) for r in results)]
    widths = dict(zip(drawn, np.linspace(4.5 if len(drawn) > 1 else 1.5, 1, len(drawn)), strict=True))
    for design, stroke in strokes.items():
        runs = [result["gold_curve"] for result in results if (result["hole"], result["design"]) == (hole, design)]
        if runs:
            steps = [step for step, _ in min(runs, key=len)]
            means = [sum(gold for _, gold in points) / len(points) for points in zip(*runs, strict=False)]
            line = "--" if stroke["line"] == "dashed" else "-"
            axes.plot(steps, means, line, color=stroke["colour"], linewidth=widths[design])
    axes.set_ylim(0, 1)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    _plain(axes)
    return figure


def strokes_of(designs: Sequence[str]) -> dict[str, dict[str, str]]:
    """A colour and a kind of line for each design: ten colours solid, then the same ten dashed."""
    kinds = ("solid", "dashed")
    return {
        design: {"colour": to_hex(f"C{number % 10}"), "line": kinds[number // 10 % 2]}
        for number, design in enumerate(designs)
    }


def _plain(axes: Axes) -> None:
    axes.set_facecolor("none")
    axes.grid(alpha=0.25)
    axes.tick_params(labelsize=7, colors=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)


def _colour(gold: float | None, hacked: bool = False) -> str:
    """The background of a cell: from red at 0 to green at 1, see-through; red if a run of it was hacked."""
    if gold is None:
        return "none"
    return f"hsl({0 if hacked else 120 * min(max(gold, 0.0), 1.0):.0f} 65% 45% / .28)"


def _share(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _interval(row: Mapping[str, float | None]) -> str:
    return "" if row["low"] is None else f"{_share(row['low'])} to {_share(row['high'])}"
