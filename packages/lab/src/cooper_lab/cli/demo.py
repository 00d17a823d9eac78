"""`cooper demo`: reward hacking and its cure on the embedded arithmetic world."""

import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from cooper_audit.cli.runs import say_how_to_open
from cooper_base.cli.console import console, progress


def demo(
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings of the four runs: key=value.")] = None,
    output_dir: Annotated[
        Path,
        typer.Option(
            "--out", "--output-dir", help="Folder for the four runs and the report; earlier runs in it are deleted."
        ),
    ] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(help="seed=: of the four runs.")] = 0,
    steps: Annotated[int | None, typer.Option(help="steps=: of each run.")] = None,
    rebuild: Annotated[Path | None, typer.Option(help="Only rebuild the warm-up models, into this folder.")] = None,
) -> None:
    """See reward hacking and its cure: one small policy trained with a rule, a fixed reward model, Cooper as published
    and Cooper, and a report of the four runs.
    """
    from cooper_base.config.checking import with_overrides
    from cooper_base.files.folder_lock import BUSY_RUNS
    from cooper_base.files.owned_file import check_file
    from cooper_base.files.owned_folder import OwnedFolder
    from cooper_lab.arithmetic.arms import ARMS, COMMAND, SUMMARY, arm_settings, run_all, summarise
    from cooper_lab.arithmetic.families import in_words
    from cooper_lab.arithmetic.picture import PICTURES, draw
    from cooper_rl import build_config

    if rebuild is not None:
        with OwnedFolder(rebuild, "cooper demo --rebuild"):
            _rebuild(rebuild, seed)
        return
    changes = with_overrides({} if steps is None else {"steps": steps}, overrides or [])
    seed = changes.pop("seed", seed)
    runs = [arm_settings(arm, output_dir, seed, changes) for arm in ARMS]
    total = sum(build_config(run).steps for run in runs)
    with OwnedFolder(output_dir, COMMAND, BUSY_RUNS):
        for name in (SUMMARY, *PICTURES):
            check_file(output_dir / name, COMMAND)
        for arm in ARMS:
            shutil.rmtree(output_dir / arm, ignore_errors=True)
        with progress("demo", total) as advance:
            seconds = run_all(runs, advance)
        summary = summarise(output_dir, seconds, seed)
        report = draw(output_dir)

    # The lines are broken here so that the table fits a terminal of 80 columns.
    headings = ("gold,\nstart", "gold,\nend", "gold,\nbest", "reward,\nstart", "reward,\nend", "alarm\nat step")
    table = Table(Column("run", no_wrap=True), *headings)
    for arm, row in summary["arms"].items():
        keys = ("gold_start", "gold_end", "gold_best", "reward_start", "reward_end")
        table.add_row(ARMS[arm].label, *(f"{row[key]:.3f}" for key in keys), str(row["alarm"] or "none"))
    console.print(table)
    console.print("Gold at the end in the family of questions where it is lowest, with its 95 % interval:")
    for arm, row in summary["arms"].items():
        console.print(f"  {ARMS[arm].label}: {in_words(row['least_family'])}", highlight=False, soft_wrap=True)
    console.print(f"{seconds:.0f} s\npicture: {output_dir / 'picture.png'}", highlight=False, soft_wrap=True)
    say_how_to_open(report)


def _rebuild(folder: Path, seed: int) -> None:
    """Build the warm-up models again, which takes about ten minutes."""
    from cooper_lab.arithmetic.build_models import build

    shown: dict[str, int] = {}
    with progress("policy, then reward model", 200) as advance:

        def report(phase: str, share: float) -> None:
            percent = int(100 * share)
            if percent > shown.get(phase, 0):
                shown[phase] = percent
                advance(percent if phase == "policy" else 100 + percent)

        build(folder, seed, report)
    console.print(f"models: {folder}", highlight=False, soft_wrap=True)
