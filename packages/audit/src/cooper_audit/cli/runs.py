"""Runs: `cooper runs` lists those of a folder, `cooper watch` shows one, `cooper report` writes a page about them."""

import json
import time
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from cooper_base.cli.console import print_result, say, stdout
from cooper_base.errors import InputError

if TYPE_CHECKING:
    from cooper_audit.run.run_record import RunRecord


COLUMNS = ("run", "state", "step", "accuracy", "measured by", "reward", "KL", "started", "duration")
LEFT_OUT = ("measured by", "KL", "started")
"""The columns that are left out if the terminal has fewer characters than this:"""
ROOM = 120


class Order(StrEnum):
    """The orders of the table."""

    started = "started"
    name = "name"  # pyright: ignore[reportAssignmentType] - typeshed has `name` as a property of every member
    accuracy = "accuracy"
    reward = "reward"
    kl = "kl"
    duration = "duration"


def runs(
    folder: Annotated[Path, typer.Argument(help="The folder that holds the runs, at any depth.")] = Path("runs"),
    sort: Annotated[
        Order, typer.Option(help="The column to sort by: names from A on, everything else from the highest on.")
    ] = (Order.started),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every figure in full.")] = False,
) -> None:
    """List the runs of a folder: state, steps, last accuracy, reward and KL, start and duration."""
    from cooper_audit.run.run_record import find_runs, read_summary

    found: list[dict[str, Any]] = []
    for path in find_runs(folder):
        try:
            found.append(_row(*read_summary(path), folder))
        except (InputError, OSError) as error:  # one damaged run must not hide the others
            say(f"left out: {error}")
    if sort == Order.name:
        found.sort(key=lambda row: row["run"])
    else:
        known = sorted((row for row in found if row[sort] is not None), key=lambda row: row[sort], reverse=True)
        found = [*known, *(row for row in found if row[sort] is None)]
    if as_json:
        found = [row | {"started": row["started"] and row["started"].isoformat()} for row in found]
        print_result(json.dumps(found, indent=1, default=str))
    else:
        _print(found, folder)


def watch(
    run: Annotated[Path, typer.Argument(help="The folder of a run; `cooper runs` lists them.")],
    once: Annotated[bool, typer.Option(help="Print one screen and end, as without a terminal.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between readings of the folder.", min=0.1)] = 1.0,
    web: Annotated[
        bool, typer.Option("--web", help="Serve the report as a page on this machine that follows the run.")
    ] = False,
    port: Annotated[int, typer.Option(help="The port of --web; 0 chooses a free one.", min=0, max=65535)] = 0,
) -> None:
    """Show a run that another process trains: progress, curves, fired watch rules, latest completions.

    Reads the run's folder only. Ends when the run is finished, or on Ctrl-C; an interrupted run may be resumed
    meanwhile. With --web it serves the report at 127.0.0.1, also of a folder of runs, and finds among all completions.
    """
    if web:
        _serve(run, port)
        return
    from cooper_audit.report.terminal import screen
    from cooper_audit.run.run_record import read_record, status_of

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


def _serve(run: Path, port: int) -> None:
    from cooper_audit.report.live_page import serve_report
    from cooper_audit.run.run_record import runs_in

    with suppress(KeyboardInterrupt):
        serve_report(runs_in(run), port, lambda address: say(f"open {address} in a browser; Ctrl-C ends it"))


def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of runs, finished or not. A folder of runs stands for all of them.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write; by default report.html in the folder, or here for several.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
) -> None:
    """Write one self-contained HTML page with verdict, curves, hack gallery and rollouts; runs side by side."""
    from cooper_audit.report.report import REPORT_FILE, write_report
    from cooper_audit.run.run_record import runs_in

    folders = [folder for run in runs for folder in runs_in(run)]
    target = out or (runs[0] / REPORT_FILE if len(runs) == 1 else Path(REPORT_FILE))
    page = write_report(folders, target, title, tell=say)
    say_how_to_open(page)


def say_how_to_open(page: Path) -> None:
    """Print where a report is, and how to look at it."""
    size = page.stat().st_size / 1e6
    say(f"report: {page} ({size:.1f} MB, one file)\nopen it in a browser: {page.resolve().as_uri()}")


def _row(run: "RunRecord", seconds: float, folder: Path) -> dict[str, Any]:
    from cooper_audit.run.run_record import status_of

    status, path = status_of(run), run.directory
    measure, accuracy = run.accuracy or (None, None)
    name = str(path.relative_to(folder)) if path != folder else str(path)
    about = {"run": name, "state": status.state, "detail": status.detail, "kind": run.config.get("kind")}
    about |= {"step": run.step, "steps": run.steps, "accuracy": accuracy, "accuracy_metric": measure}
    about |= {"reward": run.last("reward/mean"), "kl": run.last("policy/reference_kl")}
    return about | {"started": run.started, "duration": seconds}


def _print(rows: list[dict[str, Any]], folder: Path) -> None:
    from cooper_audit.report.terminal import STATE_STYLES
    from cooper_base.data.text import printable
    from cooper_base.pace import duration

    if not rows:
        say(f"{folder}: no runs")
        return
    out = stdout()
    narrow = out.is_terminal and out.width < ROOM
    left_out = LEFT_OUT if narrow else ()
    shown = [place for place, name in enumerate(COLUMNS) if name not in left_out]
    table = Table(*(Column(COLUMNS[place], no_wrap=place > 0) for place in shown), box=None, padding=(0, 2, 0, 0))
    for row in rows:
        name, state = Text(printable(row["run"])), Text(row["state"], style=STATE_STYLES[row["state"]])
        figures = {key: "" if row[key] is None else f"{row[key]:.3f}" for key in ("accuracy", "reward", "kl")}
        measured = figures["accuracy"], row["accuracy_metric"] or "", figures["reward"], figures["kl"]
        started = "" if row["started"] is None else f"{row['started'].astimezone():%Y-%m-%d %H:%M}"
        took = duration(row["duration"])
        cells = (name, state, f"{row['step']}/{row['steps'] or '?'}", *measured, started, took)
        table.add_row(*(cells[place] for place in shown))
    (out if out.is_terminal else stdout(width=10**3)).print(table)
    if narrow:
        say(f"left out for lack of room: {', '.join(left_out)}; widen the terminal, or use --json")
