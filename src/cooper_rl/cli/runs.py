"""Runs: `cooper runs` lists those of a folder, `cooper watch` shows one, `cooper report` writes a page about them."""

import json
import time
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cooper_rl.cli.console import say, stdout
from cooper_rl.errors import InputError

if TYPE_CHECKING:
    from cooper_rl.observe.run_record import RunRecord


COLUMNS = ("run", "state", "step", "accuracy", "measured by", "reward", "KL", "started", "duration")
LEAVE_OUT = ("measured by", "started", "KL", "duration")
"""The columns that a narrow terminal does without, the first of them first."""


class Order(StrEnum):
    """What the table is sorted by."""

    started = "started"
    name = "name"  # pyright: ignore[reportAssignmentType] - typeshed has `name` as a property of every member
    accuracy = "accuracy"
    reward = "reward"
    kl = "kl"
    duration = "duration"


def runs(
    folder: Annotated[Path, typer.Argument(help="The folder that holds the runs, at any depth.")] = Path("runs"),
    sort: Annotated[Order, typer.Option(help="Sorted by this: names from A on, all else from the highest on.")] = (
        Order.started
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every figure in full.")] = False,
) -> None:
    """List the runs of a folder: state, steps, last accuracy, reward and KL, start and duration."""
    from cooper_rl.observe.run_record import find_runs, read_record

    found: list[dict[str, Any]] = []
    for path in find_runs(folder):
        try:
            found.append(_row(read_record(path), folder))
        except InputError as error:  # one damaged run is no reason to hide the others
            say(f"left out: {error}")
    if sort == Order.name:
        found.sort(key=lambda row: row["run"])
    else:
        known = sorted((row for row in found if row[sort] is not None), key=lambda row: row[sort], reverse=True)
        found = [*known, *(row for row in found if row[sort] is None)]
    if as_json:
        typer.echo(json.dumps(found, indent=1, default=datetime.isoformat))
    else:
        _print(found, folder)


def watch(
    run: Annotated[Path, typer.Argument(help="The folder of a run; `cooper runs` lists them.")],
    once: Annotated[bool, typer.Option(help="Print one screen and end, as where the output is no terminal.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between two looks at the folder.", min=0.1)] = 1.0,
) -> None:
    """Show a run that another process trains: progress, curves, fired watch rules, latest completions.

    Reads the run's folder only. Ends when the run is finished, or on Ctrl-C; an interrupted run may be resumed
    meanwhile.
    """
    from cooper_rl.observe.run_record import read_record, status_of
    from cooper_rl.observe.terminal import screen

    terminal = stdout()
    record = read_record(run)
    if not once and terminal.is_terminal:
        try:
            with Live(console=terminal, screen=True, auto_refresh=False) as live:
                while status_of(record).state != "finished":
                    live.update(screen(record, *terminal.size), refresh=True)
                    time.sleep(every)
                    record = read_record(run)
        except KeyboardInterrupt:
            pass
    terminal.print(screen(record, terminal.width))


def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of runs, also unfinished ones. A folder of runs stands for them all.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write; by default report.html in the folder, or here for several.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
) -> None:
    """Write one self-contained HTML page with verdict, curves, hack gallery and rollouts; runs side by side."""
    from cooper_rl.observe.report import REPORT_FILE, write_report
    from cooper_rl.observe.run_record import runs_in

    folders = [folder for run in runs for folder in runs_in(run)]
    page = write_report(folders, out or (runs[0] / REPORT_FILE if len(runs) == 1 else Path(REPORT_FILE)), title)
    say_how_to_open(page)


def say_how_to_open(page: Path) -> None:
    """Print where a report is, and how to look at it."""
    size = page.stat().st_size / 1e6
    say(f"report: {page} ({size:.1f} MB, one file)\nopen it in a browser: {page.resolve().as_uri()}")


def _row(run: "RunRecord", folder: Path) -> dict[str, Any]:
    from cooper_rl.observe.run_record import status_of

    status, path = status_of(run), run.directory
    measure, accuracy = run.accuracy or (None, None)
    name = str(path.relative_to(folder)) if path != folder else str(path)
    about = {"run": name, "state": status.state, "detail": status.detail, "kind": run.config.get("kind")}
    about |= {"step": run.step, "steps": run.steps, "accuracy": accuracy, "accuracy_metric": measure}
    about |= {"reward": run.last("reward/mean"), "kl": run.last("policy/reference_kl")}
    return about | {"started": run.started, "duration": sum(run.seconds)}


def _print(rows: list[dict[str, Any]], folder: Path) -> None:
    from cooper_rl.data.text import printable
    from cooper_rl.observe.terminal import STATE_STYLES

    if not rows:
        say(f"{folder}: no runs")
        return
    columns: dict[str, list[str | Text]] = {name: [] for name in COLUMNS}
    for row in rows:
        name, state = Text(printable(row["run"])), Text(row["state"], style=STATE_STYLES[row["state"]])
        figures = {key: "" if row[key] is None else f"{row[key]:.3f}" for key in ("accuracy", "reward", "kl")}
        measured = figures["accuracy"], row["accuracy_metric"] or "", figures["reward"], figures["kl"]
        started = "" if row["started"] is None else f"{row['started'].astimezone():%Y-%m-%d %H:%M}"
        duration = str(timedelta(seconds=round(row["duration"])))
        cells = (name, state, f"{row['step']}/{row['steps'] or '?'}", *measured, started, duration)
        for column, cell in zip(columns.values(), cells, strict=True):
            column.append(cell)
    _print_what_fits(columns)


def _print_what_fits(columns: dict[str, list[str | Text]]) -> None:
    """Print the columns as a table, on a terminal without those that it has no room for."""
    out, left_out = stdout(), []
    while True:
        table = Table(*columns, box=None, padding=(0, 2, 0, 0))
        for cells in zip(*columns.values(), strict=True):
            table.add_row(*cells)
        needed = out.measure(table, options=out.options.update(max_width=10**4)).maximum
        if needed <= out.width or not out.is_terminal or len(left_out) == len(LEAVE_OUT):
            break
        left_out.append(LEAVE_OUT[len(left_out)])
        del columns[left_out[-1]]
    (out if out.is_terminal else stdout(width=max(needed, out.width))).print(table)
    if left_out:
        say(f"left out for want of room: {', '.join(left_out)}; widen the terminal, or use --json")
