"""The screen of `cooper watch`: one run, as far as it is on disk."""

import math
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cooper_rl.data.text import printable
from cooper_rl.observe.live.braille import braille_chart, sparkline
from cooper_rl.observe.run_record import RunRecord
from cooper_rl.observe.run_status import RunStatus, State, status_of

STATE_STYLES: dict[State, str] = {
    "running": "bold green",
    "finished": "bold cyan",
    "stopped": "bold red",
    "interrupted": "bold yellow",
}
CHARTS: tuple[tuple[str, dict[str, str]], ...] = (
    (
        "accuracy",
        {
            "rule/accuracy": "rule",
            "gold/accuracy": "gold",
            "test/rule_avg": "test rule",
            "test/gold_avg": "test gold",
        },
    ),
    ("training reward", {"reward/mean": "reward"}),
)
"""The charts, each with its metrics and their short names."""
COLOURS = ("yellow", "green", "magenta", "cyan")
FIGURES = (
    ("policy/reference_kl", "KL to start"),
    ("rollout/entropy_estimate", "entropy"),
    ("rollout/mean_length", "length"),
    ("rollout/cut_off_rate", "cut off"),
    ("policy/usable_groups", "usable groups"),
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


def screen(run: RunRecord, width: int, height: int = 31) -> Group:
    """Everything that `cooper watch` shows, for a terminal of this size in characters.

    Text of models and of the run's files is stripped of control characters and never read as markup.
    """
    status = status_of(run)
    return Group(
        *_header(run, status),
        _charts(run, width, min(max(height - LINES_BELOW, CHART_HEIGHTS[0]), CHART_HEIGHTS[1])),
        _figures(run, width),
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
    parts = [f"step {run.step} of {run.steps or '?'}"]
    if status.seconds_left is not None:
        parts.append(f"left {timedelta(seconds=round(status.seconds_left))}")
    if status.seconds_per_step is not None:
        parts.append(f"{status.seconds_per_step:.3g} s a step")
    if status.tokens_per_second is not None:
        parts.append(f"{status.tokens_per_second:,.0f} tokens/s")
    if (peak := run.last("memory/peak")) is not None:
        parts.append(f"{peak:,.0f} MiB at most")
    metrics = run.directory / "metrics.jsonl"
    if status.state == "running" and metrics.exists():
        parts.append(f"last step {timedelta(seconds=round(max(time.time() - metrics.stat().st_mtime, 0)))} ago")
    progress = Table.grid(padding=(0, 2))
    progress.add_row(ProgressBar(total=run.steps or 1, completed=run.step, width=24), "  ".join(parts))
    return [title, progress]


def _charts(run: RunRecord, width: int, height: int) -> Table:
    """The charts side by side or, in a narrow terminal, one above the other."""
    columns = len(CHARTS) if width >= 100 else 1
    each = max(width // columns - 12, 16)
    grid = Table.grid(padding=(1, 3, 0, 0))
    charts = [_chart(run, title, names, each, height) for title, names in CHARTS]
    for first in range(0, len(charts), columns):
        grid.add_row(*charts[first : first + columns])
    return grid


def _chart(run: RunRecord, title: str, names: dict[str, str], width: int, height: int) -> Text:
    lines = {short: run.series(name) for name, short in names.items()}
    lines = {short: points for short, points in lines.items() if points}
    values = [value for points in lines.values() for _, value in points]
    text = Text(f"{title}  ", style="bold", no_wrap=True)
    for number, (short, points) in enumerate(lines.items()):
        text.append(f"{short} {points[-1][1]:.2f}  ", style=f"not bold {COLOURS[number]}")
    if not values:
        return text.append("nothing recorded yet", style="not bold dim")
    low, high = _limits(values)
    rows = braille_chart(list(lines.values()), width, height, (0, max(run.steps, run.step, 1)), (low, high))
    for number, row in enumerate(rows):
        label = {0: f"{high:.3g}", height - 1: f"{low:.3g}"}.get(number, "")
        text.append(f"\n{label:>7} ", style="not bold dim")
        for character, line in row:
            text.append(character, style=f"not bold {COLOURS[line]}" if line >= 0 else "not bold")
    return _mark_alarms(text, run, width)


def _mark_alarms(text: Text, run: RunRecord, width: int) -> Text:
    """A last line below a chart with the steps on its axis and a mark where the reward-hacking alarm went off."""
    last = max(run.steps, run.step, 1)
    axis = [" "] * width
    axis[-len(str(last)) :] = str(last)
    axis[0] = "0"
    text.append(f"\n{'step':>7} ", style="not bold dim")
    alarms = {int(event["step"] / last * (width - 1)) for event in run.events if "reward_hacking" in event["metric"]}
    for column, character in enumerate(axis):
        text.append("▲" if column in alarms else character, style="bold red" if column in alarms else "not bold dim")
    return text


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """The range of a chart's axis: 0 to 1 for values that lie in it."""
    low, high = min(values), max(values)
    return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)


def _figures(run: RunRecord, width: int) -> Table:
    columns = 2 if width >= 100 else 1
    table = Table.grid(padding=(0, 2))
    cells: list[list[RenderableType]] = []
    for name, label in FIGURES:
        if points := run.series(name):
            bars = sparkline([value for _, value in points], 20)
            cells.append([Text(label, style="dim"), Text(bars, style="blue"), f"{points[-1][1]:.4g}", "   "])
    for first in range(0, len(cells), columns):
        table.add_row(*(cell for row in cells[first : first + columns] for cell in row))
    return table


def _faults(run: RunRecord) -> list[RenderableType]:
    if not run.events:
        return [Text("\nno watch rule has fired", style="dim")]
    lines: list[RenderableType] = [Text(f"\nwatch rules fired ({len(run.events)})", style="bold")]
    for event in run.events[-FAULTS:]:
        back = f", back to step {event['back_to']}" if "back_to" in event else ""
        said = Text.assemble((f"step {event['step']} ({event['action']}{back}) ", "red"), plain(str(event["message"])))
        said.no_wrap, said.overflow = True, "ellipsis"
        lines.append(said)
    return lines


def _completions(run: RunRecord) -> list[RenderableType]:
    """The completions of the last step with the highest reward, at most one for each problem."""
    steps = run.rollout_steps[-1:]
    best: dict[str, dict[str, Any]] = {}
    for row in run.rollouts(steps):
        kept = best.get(row["problem"])
        if math.isfinite(row["reward"]) and (kept is None or row["reward"] > kept["reward"]):
            best[row["problem"]] = row
    if not best:
        return []
    table = Table("reward", "rule", "gold", "question", "completion", box=None, padding=(0, 1), expand=True)
    table.columns[3].ratio, table.columns[4].ratio = 2, 5
    for row in sorted(best.values(), key=lambda row: -row["reward"])[:COMPLETIONS]:
        right = row.get("gold", row["verdict"] == "correct")
        gold = "" if "gold" not in row else "right" if row["gold"] else "wrong"
        reward = Text(f"{row['reward']:.3f}", style="" if right else "bold red")
        table.add_row(reward, plain(str(row["verdict"])), gold, plain(row["question"]), plain(row["text"]))
    return [Text(f"\nhighest rewards of step {steps[0]}, one for each problem", style="bold"), table]
