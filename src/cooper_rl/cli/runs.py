"""`cooper runs`: the runs of a folder with their state and last figures."""

import json
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cooper_rl.cli.console import console
from cooper_rl.errors import InputError

if TYPE_CHECKING:
    from cooper_rl.observe.run_record import RunRecord


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
    from cooper_rl.observe.run_record import find_runs, read_record  # noqa: PLC0415 - `cooper --help` stays quick

    found = []
    for path in find_runs(folder):
        try:
            found.append(_row(read_record(path), folder))
        except InputError as error:  # one damaged run is no reason to hide the others
            console.print(f"left out: {error}", highlight=False, soft_wrap=True, markup=False)
    if sort == Order.name:
        found.sort(key=lambda row: row["run"])
    else:
        known = sorted((row for row in found if row[sort] is not None), key=lambda row: row[sort], reverse=True)
        found = [*known, *(row for row in found if row[sort] is None)]
    if as_json:
        typer.echo(json.dumps(found, indent=1, default=datetime.isoformat))
    else:
        _print(found, folder)


def _row(run: "RunRecord", folder: Path) -> dict[str, Any]:
    from cooper_rl.observe.run_record import status_of  # noqa: PLC0415

    status = status_of(run)
    measure, accuracy = run.accuracy or (None, None)
    path = run.directory
    return {
        "run": str(path.relative_to(folder)) if path != folder else str(path),
        "state": status.state,
        "detail": status.detail,
        "kind": run.config.get("kind"),
        "step": run.step,
        "steps": run.steps,
        "accuracy": accuracy,
        "accuracy_metric": measure,
        "reward": run.last("reward/mean"),
        "kl": run.last("policy/reference_kl"),
        "started": run.started,
        "duration": sum(run.seconds),
    }


def _print(rows: list[dict[str, Any]], folder: Path) -> None:
    from cooper_rl.data.text import printable  # noqa: PLC0415
    from cooper_rl.observe.terminal import STATE_STYLES  # noqa: PLC0415

    if not rows:
        console.print(f"{folder}: no runs", highlight=False, soft_wrap=True, markup=False)
        return
    table = Table("run", "state", "step", "accuracy", "measured by", "reward", "KL", "started", "duration")
    for row in rows:
        table.add_row(
            Text(printable(row["run"])),
            Text(row["state"], style=STATE_STYLES[row["state"]]),
            f"{row['step']}/{row['steps'] or '?'}",
            _figure(row["accuracy"]),
            row["accuracy_metric"] or "",
            _figure(row["reward"]),
            _figure(row["kl"]),
            _date(row["started"]),
            str(timedelta(seconds=round(row["duration"]))),
        )
    Console().print(table)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _date(started: datetime | None) -> str:
    return "" if started is None else started.astimezone().strftime("%Y-%m-%d %H:%M")
