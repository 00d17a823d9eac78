"""Line charts as SVG text, drawn without a display."""

import io
from collections.abc import Mapping, Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Points = Sequence[tuple[float, float]]


def line_chart_svg(lines: Mapping[str, Points], width: float = 6.2, height: float = 3.0) -> Markup:
    """One chart with a line per entry, as inline SVG."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    draw_lines(axes, lines)
    axes.legend(fontsize=7, frameon=False)
    return figure_svg(figure)


def draw_lines(axes: Axes, lines: Mapping[str, Points]) -> None:
    """Plot the lines against the step."""
    for label, points in lines.items():
        axes.plot(*zip(*points, strict=True), label=label, linewidth=1.6)
    axes.set_xlabel("step", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def figure_svg(figure: Figure) -> Markup:
    """The figure as an SVG element without the XML prologue. It is safe to embed because we draw it ourselves."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return Markup(text[text.index("<svg") :])
