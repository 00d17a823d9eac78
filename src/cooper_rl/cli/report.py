"""`cooper report`: one page about one run or several."""

from pathlib import Path
from typing import Annotated

import typer

from cooper_rl.cli.console import console


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
    from cooper_rl.observe.report import FILE, write_report  # noqa: PLC0415 - `cooper --help` stays quick
    from cooper_rl.observe.run_record import runs_in  # noqa: PLC0415

    folders = [folder for run in runs for folder in runs_in(run)]
    page = write_report(folders, out or (runs[0] / FILE if len(runs) == 1 else Path(FILE)), title)
    say_how_to_open(page)


def say_how_to_open(page: Path) -> None:
    """Print where a report is, and how to look at it."""
    size = page.stat().st_size / 1e6
    console.print(
        f"report: {page} ({size:.1f} MB, one file)\nopen it in a browser: {page.resolve().as_uri()}",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
