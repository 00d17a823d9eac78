"""A run in a terminal: lines of progress, the first prompt and completion, and the screen of `cooper watch`."""

import math
import time
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import PaddingDimensions
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cooper_audit.run.hacking_alarm import HACKING
from cooper_audit.run.run_record import NOTE, RunRecord, RunStatus, State, is_right, status_of
from cooper_base.data.text import printable
from cooper_base.pace import duration

STATE_STYLES: dict[State, str] = {
    "running": "bold green",
    "finished": "bold cyan",
    "stopped": "bold red",
    "ended": "green",
    "interrupted": "bold yellow",
}
CHARTS = {
    "accuracy": {"rule/accuracy": "rule", "gold/accuracy": "gold"}
    | {"test/rule_avg": "test rule", "test/gold_avg": "test gold"},
    "training reward": {"reward/mean": "reward"},
}
"""The charts, each with its metrics and their short names."""
COLOURS = ("yellow", "green", "magenta", "cyan")
"""Colours of the lines of a chart; a terminal has its own palette."""
FIGURES = (
    ("policy/reference_kl", "KL to start"),
    ("rollout/entropy_estimate", "entropy"),
    ("rollout/mean_length", "length"),
    ("rollout/cut_off_rate", "cut off"),
    ("policy/usable_groups", "usable groups"),
    ("rule/heard", "judged by rule"),
    ("reward_model/rule_agreement", "RM/rule agreement"),
    ("reward_model/pair_accuracy_before", "pair accuracy"),
    ("watch/faults", "rules broken"),
)
"""The metrics that get a sparkline."""
CHART_HEIGHTS = (4, 12)
"""Least and most lines of a chart."""
LINES_BELOW = 23
"""Lines that everything but a chart needs."""
FAULTS, COMPLETIONS = 3, 5
"""Most events and completions on the screen."""
LONGEST_TEXT = 400
"""Most characters of a text on the screen."""

BLANK = 0x2800
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each dot in a braille character, by row and column; see Unicode's braille patterns."""
BARS = "▁▂▃▄▅▆▇█"

Points = Sequence[tuple[float, float]]


def screen(run: RunRecord, width: int, height: int = 31) -> Group:
    """Everything that `cooper watch` shows, without control characters or markup from models and the run's files."""
    columns = 2 if width >= 100 else 1
    size = max(width // columns - 12, 16), min(max(height - LINES_BELOW, CHART_HEIGHTS[0]), CHART_HEIGHTS[1])
    charts = [[_chart(run, title, names, *size)] for title, names in CHARTS.items()]
    return Group(
        *_header(run, status_of(run)),
        _in_columns(charts, columns, (1, 3, 0, 0)),
        _figures(run, columns),
        *_faults(run),
        *_completions(run),
    )


def plain(text: str) -> Text:
    """One line of text from a model or a file, without control characters, long lines cut."""
    return Text(printable(text[:LONGEST_TEXT]).replace("\n", "⏎"), no_wrap=True, overflow="ellipsis")


def _header(run: RunRecord, status: RunStatus) -> list[RenderableType]:
    state = Text.assemble((status.state, STATE_STYLES[status.state]), "  ", plain(status.detail))
    title = Table.grid(padding=(0, 2), expand=True)
    title.add_row(Text.assemble(("cooper ", "dim"), plain(str(run.directory))), state)
    metrics, left = run.directory / "metrics.jsonl", status.seconds_left
    silent = time.time() - metrics.stat().st_mtime if status.state == "running" and metrics.exists() else None
    facts = {
        "left {}": None if left is None else duration(left),
        "{:.3g} s a step": status.seconds_per_step,
        "{:,.0f} tokens/s": status.tokens_per_second,
        "{:,.0f} MiB at most": run.last("memory/peak"),
        "last step {} ago": None if silent is None else duration(silent),
    }
    parts = [f"step {run.step} of {run.steps or '?'}"]
    parts += [text.format(value) for text, value in facts.items() if value is not None]
    progress = Table.grid(padding=(0, 2))
    progress.add_row(ProgressBar(total=run.steps or 1, completed=run.step, width=24), "  ".join(parts))
    return [title, progress]


def _in_columns(cells: Sequence[Sequence[RenderableType]], columns: int, padding: PaddingDimensions) -> Table:
    table = Table.grid(padding=padding)
    for first in range(0, len(cells), columns):
        table.add_row(*chain.from_iterable(cells[first : first + columns]))
    return table


def _chart(run: RunRecord, title: str, names: dict[str, str], width: int, height: int) -> Text:
    """A chart with its steps below, and a mark where the reward-hacking alarm went off."""
    lines = {short: points for name, short in names.items() if (points := run.series(name))}
    text = Text(f"{title}  ", style="bold", no_wrap=True)
    for (short, points), colour in zip(lines.items(), COLOURS, strict=False):
        text.append(f"{short} {points[-1][1]:.2f}  ", style=f"not bold {colour}")
    if not lines:
        return text.append("nothing recorded yet", style="not bold dim")
    values = [value for points in lines.values() for _, value in points]
    low, high = min(values), max(values)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    last = max(run.steps, run.step, 1)
    for number, row in enumerate(braille_chart(list(lines.values()), width, height, (0, last), (low, high))):
        label = {0: f"{high:.3g}", height - 1: f"{low:.3g}"}.get(number, "")
        text.append(f"\n{label:>7} ", style="not bold dim")
        for character, line in row:
            text.append(character, style=f"not bold {COLOURS[line]}" if line >= 0 else "not bold")
    text.append(f"\n{'step':>7} ", style="not bold dim")
    steps = [int(event["step"]) for event in run.events if event["metric"] == HACKING]
    alarms = {int(step / last * (width - 1)) for step in steps}
    for column, character in enumerate(f"0{last:>{width - 1}}"):
        text.append("▲" if column in alarms else character, style="bold red" if column in alarms else "not bold dim")
    return text


def _figures(run: RunRecord, columns: int) -> Table:
    cells: list[list[RenderableType]] = []
    for name, label in FIGURES:
        if values := run.values(name):
            bars = Text(sparkline(values, 20), style="blue")
            cells.append([Text(label, style="dim"), bars, f"{values[-1]:.4g}", "   "])
    return _in_columns(cells, columns, (0, 2))


def _faults(run: RunRecord) -> list[RenderableType]:
    fired = [event for event in run.events if event["action"] != NOTE]
    lines: list[RenderableType] = [plain(f"\n{event['message']}") for event in run.events if event["action"] == NOTE]
    if not fired:
        return [*lines, Text("\nno watch rule has fired", style="dim")]
    lines.append(Text(f"\nwatch rules fired ({len(fired)})", style="bold"))
    for event in fired[-FAULTS:]:
        back = f", back to step {event['back_to']}" if "back_to" in event else ""
        when = (f"step {event['step']} ({event['action']}{back}) ", "red")
        lines.append(Text.assemble(when, plain(str(event["message"])), no_wrap=True, overflow="ellipsis"))
    return lines


def _completions(run: RunRecord) -> list[RenderableType]:
    """The completions of the last step with the highest reward, at most one for each problem."""
    steps = [int(path.stem) for path in run.files("rollouts")[-1:]]
    rows = [row for row in run.rollouts(steps) if math.isfinite(row["reward"])]
    best: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: -row["reward"]):
        best.setdefault(row["problem"], row)
    if not best:
        return []
    table = Table("reward", "rule", "gold", "question", "completion", box=None, padding=(0, 1), expand=True)
    table.columns[3].ratio, table.columns[4].ratio = 2, 5
    for row in list(best.values())[:COMPLETIONS]:
        gold = "" if "gold" not in row else "right" if row["gold"] else "wrong"
        reward = Text(f"{row['reward']:.3f}", style="bold red" if is_right(row) is False else "")
        table.add_row(reward, plain(str(row["verdict"])), gold, plain(row["question"]), plain(row["text"]))
    return [Text(f"\nhighest rewards of step {steps[0]}, one for each problem", style="bold"), table]


def braille_chart(
    lines: Sequence[Points], width: int, height: int, x_range: tuple[float, float], y_range: tuple[float, float]
) -> list[list[tuple[str, int]]]:
    """`height` rows of `width` characters, each with the number of the line that it shows, or -1 for a blank.

    Where lines cross, the character shows the dots of both and the number of the later one. Values outside of the
    ranges are drawn at the edge. Not the packages `plotext` and `plotille`: they return text with colour codes, which
    would have to be parsed for rich and for the marks of alarms, and plotille leaves out what is outside of the ranges.
    """
    bits = [[0] * width for _ in range(height)]
    owner = [[-1] * width for _ in range(height)]
    across, up = 2 * width, 4 * height
    for number, points in enumerate(lines):
        dots = [(_scaled(x, x_range, across), up - 1 - _scaled(y, y_range, up)) for x, y in sorted(points)]
        for column, row in _connected(dots):
            bits[row // 4][column // 2] |= DOTS[row % 4][column % 2]
            owner[row // 4][column // 2] = number
    return [
        [(chr(BLANK + bit) if bit else " ", number) for bit, number in zip(*row, strict=True)]
        for row in zip(bits, owner, strict=True)
    ]


def sparkline(values: Sequence[float], width: int) -> str:
    """The values as bars between their lowest and highest, averaged to at most `width` characters."""
    size = max(-(-len(values) // width), 1)
    means = [sum(part) / len(part) for part in (values[i : i + size] for i in range(0, len(values), size))]
    return "".join(BARS[_scaled(mean, (min(means), max(means)), len(BARS))] for mean in means)


def _scaled(value: float, limits: tuple[float, float], cells: int) -> int:
    """The cell of a value when its range is divided into `cells`. In a range without width, 0 is lowest and any other
    value in the middle.
    """
    low, high = limits
    if not high > low:
        return (cells - 1) // 2 if value else 0
    return min(max(int((value - low) / (high - low) * cells), 0), cells - 1)


def _connected(dots: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """The dots, and those on the straight line from each to the next."""
    cells = set(dots[:1])
    for (x0, y0), (x1, y1) in pairwise(dots):
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        cells |= {(round(x0 + (x1 - x0) * i / steps), round(y0 + (y1 - y0) * i / steps)) for i in range(steps + 1)}
    return cells
