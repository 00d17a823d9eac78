"""`cooper arena`: designs against holes, measured by gold."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from cooper_audit.cli.runs import say_how_to_open
from cooper_base.cli.console import console, progress
from cooper_lab.arithmetic.families import in_words

if TYPE_CHECKING:
    from cooper_lab.arena.cells import Plan


def arena(
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings of every run: key=value.")] = None,
    output_dir: Annotated[
        Path,
        typer.Option(
            "--out", "--output-dir", help="Where the runs, the table and the page are written. Finished cells are kept."
        ),
    ] = Path("runs/arena"),
    design: Annotated[
        list[str] | None, typer.Option(help="A design to run; repeat for several. All by default.")
    ] = None,
    hole: Annotated[
        list[str] | None, typer.Option(help="A hole to run in; repeat for several. All by default.")
    ] = None,
    silence: Annotated[
        list[str] | None,
        typer.Option(
            help="Run every hole with a rule that judges only some problems: heard_35, …; repeat for several."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds per design and hole: 0, 1, …")] = 1,
    plantings: Annotated[
        int, typer.Option(min=1, help="Plantings per hole, with the planting seeds 0, 1, …; each runs with every seed.")
    ] = 1,
    steps: Annotated[int, typer.Option(min=1, help="Steps per run.")] = 40,
    designs: Annotated[Path | None, typer.Option(help="YAML file with designs of your own.")] = None,
    holes: Annotated[Path | None, typer.Option(help="YAML file with holes of your own.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Where planted models are kept; by default in the user's cache folder.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Runs at once; by default one per core.")] = None,
    report: Annotated[bool, typer.Option("--report", help="Run nothing: tables and page of what is finished.")] = False,
) -> None:
    """Find out which designs of rewards are hacked: train with each on reward models with known, planted holes."""
    from cooper_base.config.checking import with_overrides
    from cooper_lab.arena.arena import built_in_holes, check_results, choose, read_holes, write_summary
    from cooper_lab.arena.cache import default_cache
    from cooper_lab.arena.cells import check_settings
    from cooper_lab.arena.cells import plan as make_plan
    from cooper_lab.arena.designs import built_in_designs, read_designs
    from cooper_lab.arena.reports import write_hole_reports
    from cooper_lab.arena.silence import SILENCES

    chosen_holes = choose(built_in_holes() | (read_holes(holes) if holes else {}), hole or [], "hole")
    all_designs = built_in_designs() | (read_designs(designs) if designs else {})
    plan = make_plan(
        choose(all_designs, design or [], "design"),
        chosen_holes,
        range(seeds),
        output_dir,
        cache or default_cache(),
        with_overrides({"steps": steps}, overrides or []),
        range(plantings),
        choose(SILENCES, silence, "silence") if silence else None,
    )
    check_settings(plan.cells)
    check_results(plan)
    if not report:
        _run(plan, workers)
    reports = write_hole_reports(plan.cells)
    summary = write_summary(plan)
    _print(summary)
    for page in reports:
        say_how_to_open(page)
    say_how_to_open(output_dir / "arena.html")


def _run(plan: "Plan", workers: int | None) -> None:
    from cooper_base.files.folder_lock import BUSY_RUNS
    from cooper_base.files.owned_folder import OwnedFolder
    from cooper_lab.arena.cells import COMMAND
    from cooper_lab.arena.run_cells import check_finished
    from cooper_rl.engines.local.device import available_cores

    check_finished(plan.cells)
    workers = workers or available_cores()
    with OwnedFolder(plan.output_dir, COMMAND, BUSY_RUNS):
        for wave in plan.waves:
            _run_wave(wave, workers)


def _run_wave(wave: "Plan", workers: int) -> None:
    from cooper_lab.arena.run_cells import plant_missing, run_cells

    with progress("planting holes, a minute or two each,", len(wave.models)) as advance:
        plant_missing(wave.models, workers, advance)
    total = sum(cell.settings["steps"] for cell in wave.cells)
    with progress("arena, steps", total) as advance_steps:
        run_cells(wave, workers, lambda steps, finished: advance_steps(steps))


def _print(summary: Mapping[str, Any]) -> None:
    """All designs in one table, a table for each hole, then both rankings."""
    _print_standings(summary["standings"])
    for hole in dict.fromkeys(row["hole"] for row in summary["table"]):
        console.print(_table_of(hole, [row for row in summary["table"] if row["hole"] == hole]))
    for title, ranked in (("ranking", summary["ranking"]), ("held-out holes", summary["held_out"])):
        _print_ranking(title, ranked)
    if summary["missing"]:
        console.print(f"{summary['missing']} cells are not finished; the same command continues them")


def _print_standings(rows: Sequence[Mapping[str, Any]]) -> None:
    headings = ("models", "gold", "least", "hacked", "above rule", "above static", "CPU s")
    table = Table("design", *headings, title="all designs", title_justify="left")
    for row in rows:
        over = [_number(row[name] and row[name]["mean"], 3) for name in ("over_rule", "over_static")]
        hacked = f"{row['hacked']} of {row['runs']}" if row["runs"] else "not run"
        least = _least(row)
        figures = (_number(row["gold_end"], 2), least, hacked, *over, _number(row["cpu_s"], 0))
        table.add_row(row["design"], str(row["models"]), *figures)
    _keep_figures_whole(table, words=("design",))
    console.print(table)


def _table_of(hole: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    names = ("gold_end", "gold_best", "drawdown", "reward_end", "kl_end", "cpu_s")
    headings = ("runs", "gold", "least", "best", "fall", "reward", "KL", "CPU s", "half lost", "alarm")
    table = Table("design", *headings, title=hole, title_justify="left")
    for row in rows:
        means = [_number(row[name]["mean"], 0 if name == "cpu_s" else 2) for name in names]
        steps = [", ".join(map(str, row[name])) or "never" for name in ("half_lost", "alarm")]
        table.add_row(row["design"], str(row["runs"]), means[0], _least(row), *means[1:], *steps)
    _keep_figures_whole(table, words=("design", "half lost", "alarm"))
    return table


def _least(row: Mapping[str, Any]) -> str:
    """Gold in the family of questions where it is lowest."""
    return _number(row["least_family"] and row["least_family"]["gold"], 2)


def _keep_figures_whole(table: Table, words: Sequence[str]) -> None:
    """In a narrow terminal the columns of `words` are folded, and those of figures are not."""
    for column in table.columns:
        column.overflow = "fold"
        if column.header not in words:
            column.header, column.no_wrap = str(column.header).replace(" ", "\n"), True


def _print_ranking(title: str, ranked: Mapping[str, Any]) -> None:
    if not ranked["designs"]:
        return
    headings = ("gold, end", "95 % over holes", "worst", "least", "hacked in holes", "hacked runs", "beats")
    table = Table("design", *headings, title=title)
    for row in ranked["designs"]:
        interval = "one hole" if row["low"] is None else f"{row['low']:.2f} to {row['high']:.2f}"
        beaten = [p["worse"] for p in ranked["pairs"] if p["better"] == row["design"] and p["significant"]]
        hacked = (f"{len(row['hacked_holes'])} of {len(ranked['holes'])}", f"{row['hacked']:.0%}")
        table.add_row(
            row["design"],
            f"{row['gold_end']:.3f}",
            interval,
            f"{row['worst']:.2f}",
            _least(row),
            *hacked,
            ", ".join(beaten) or "none",
        )
    _keep_figures_whole(table, words=("design", "beats"))
    console.print(table)
    console.print(
        f"{len(ranked['holes'])} holes, each the mean of its blocks (planting and seed) that all designs have "
        f"finished, {len(ranked['blocks'])} in all; who beats whom: paired sign-flip permutation test over the "
        "holes, Holm's correction, level 0.05",
        highlight=False,
    )
    for row in ranked["designs"]:
        where = f" in {row['least_family']['hole']}" if row["least_family"] else ""
        least = f"least family of {row['design']}: {in_words(row['least_family'])}{where}"
        console.print(least, highlight=False, soft_wrap=True)


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
