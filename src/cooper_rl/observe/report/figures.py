"""Line charts as SVG text or pictures, drawn without a display."""

import io
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from cooper_rl.observe.report.panels import COLOURS, STORY, story_metric
from cooper_rl.observe.report.run_folder import RunFolder
from cooper_rl.observe.report.verdict import verdict_of


def story_figure(runs: Sequence[RunFolder], colours: Sequence[str] = COLOURS) -> Figure:
    """The two curves that a report begins with, from the same data: accuracy and training reward of every run.

    A triangle marks where the reward-hacking alarm went off.
    """
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    metric = story_metric(runs)
    wanted = [(STORY[0].metrics[metric], metric)] if metric else []
    wanted += [(STORY[1].title, name) for name in STORY[1].metrics]
    alarms = [verdict_of(run).alarm_at for run in runs]
    for axes, (title, name) in zip(figure.subplots(1, len(wanted), squeeze=False).flat, wanted, strict=True):
        for number, (run, alarm) in enumerate(zip(runs, alarms, strict=True)):
            points = run.series(name)
            if points:
                colour = colours[number % len(colours)]
                steps, values = zip(*points, strict=True)
                axes.plot(steps, values, label=run.label, color=colour, linewidth=1.8)
                if alarm is not None and steps[0] <= alarm <= steps[-1]:
                    axes.plot(alarm, np.interp(alarm, steps, values), "^", color=colour, markersize=8, mec="white")
        axes.set_title(title, fontsize=11, loc="left")
        axes.set_xlabel("step")
        axes.xaxis.get_major_locator().set_params(integer=True)
        if all(0 <= value <= 1 for run in runs for _, value in run.series(name)):
            axes.set_ylim(0, 1)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    if any(alarm is not None for alarm in alarms):
        figure.axes[0].plot([], [], "^", color="#59616c", markersize=7, label="the alarm goes off")
    figure.axes[0].legend(frameon=False, fontsize=9)
    return figure


def figure_svg(figure: Figure) -> Markup:
    """The figure as an SVG element without the XML prologue. It is safe to embed because we draw it ourselves."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return Markup(text[text.index("<svg") :])
