"""The league: every design of the arena in the same cells, and its table in docs/what-stops-hacking.md.

    PYTHONPATH=examples cooper arena --out runs/league --designs examples/shelf/designs.yaml --silence heard_35 \\
        --plantings 3 --steps 20 --hole length --hole opener --hole numeric_blind_spot --hole kind_noise
    PYTHONPATH=examples python -m benchmarks.arena.league runs/league --page docs/what-stops-hacking.md
    PYTHONPATH=examples python -m benchmarks.arena.league      # from what is saved

The first command can be interrupted, and goes on when it is called again; `--design NAME` runs some designs first. The
second adds what is finished to `benchmarks/results/league.json`. There a row stays as long as it is of today's version:
its fingerprint is that of the cell as it would run now, with the defaults of its kind. The designs that have run in
some of the holes are in a second table, each in the cells that all of these have, and those without a row in a third.
The last two columns of all are of an older version, in which the rule judges all answers (`results/arena.json`).
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.arena.arena_table import SHELF, small

from cooper_base.files.durable import write_text
from cooper_lab.arena.arena import built_in_holes, choose
from cooper_lab.arena.cache import default_cache
from cooper_lab.arena.cells import Cell, plan
from cooper_lab.arena.comparison import block_of, standings
from cooper_lab.arena.designs import Design, built_in_designs, read_designs
from cooper_lab.arena.run_cells import read_results
from cooper_lab.arena.silence import SILENCES
from cooper_lab.arithmetic.families import in_words

HOLES = ("length", "opener", "numeric_blind_spot", "kind_noise")
PLANTINGS, STEPS = 3, 20
RESULTS = Path(__file__).parents[1] / "results"
SAVED, OLDER = RESULTS / "league.json", RESULTS / "arena.json"
OF_TODAY = ["planted models", "gold", "least family", "hacked", "above `rule`", "above `static`", "CPU s"]
OF_OLDER = ["older: above `rule`", "older: hacked"]
BESIDE = ("rule", "static", "paper", "cooper")
"""Designs that stand in the table of some of the holes too, so that the others can be compared with them there."""
BEGIN, END = "<!-- table of benchmarks/results/league.json -->\n", "\n<!-- end of that table -->"
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="output folder of the arena, whose rows are added")
    parser.add_argument("--page", type=Path, help="write the table into this page, between its two marks")
    arguments = parser.parse_args()
    if arguments.folder:
        found = [small(row) | {"fingerprint": row["fingerprint"]} for row in read_results(arguments.folder)]
        save(of_today([*found, *_read(SAVED)], cells()), SAVED)
    lines = table(_read(SAVED), _read(OLDER), {name: one.about for name, one in designs().items()})
    if arguments.page:
        before, rest = arguments.page.read_text(encoding="utf-8").split(BEGIN)
        write_text(arguments.page, before + BEGIN + "\n".join(lines) + END + rest.split(END, 1)[1])
    print("\n".join(lines))


def designs() -> dict[str, Design]:
    """Every design: the arena's, and those that have earned no place in the package."""
    return built_in_designs() | read_designs(SHELF)


def cells() -> Sequence[Cell]:
    """The league's cells as they would run now."""
    holes, silence = choose(built_in_holes(), HOLES, "hole"), choose(SILENCES, ["heard_35"], "silence")
    settings, where = {"steps": STEPS}, (Path("runs/league"), default_cache())
    return plan(designs(), holes, [0], *where, settings, range(PLANTINGS), silence).cells


def of_today(rows: Sequence[Row], now: Sequence[Cell]) -> list[Row]:
    """The rows of the league's cells that have today's fingerprint, the first of each, in the order of the cells."""
    wanted = {(cell.design, cell.hole, cell.planting, cell.seed): cell.fingerprint for cell in now}
    kept: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = (row["design"], *block_of(row))
        if wanted.get(key) == row["fingerprint"]:
            kept.setdefault(key, row)
    return [kept[key] for key in wanted if key in kept]


def save(rows: Sequence[Row], path: Path) -> None:
    """Write the rows, one a line."""
    write_text(path, "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


def table(rows: Sequence[Row], older: Sequence[Row], about: Mapping[str, str]) -> list[str]:
    """Three tables in Markdown: designs by how far they end above the rule, in all holes and in some of them, and those
    not run by the older results."""
    before = {row["design"]: row for row in standings(older, [*about])}
    blocks = {design: {block_of(row) for row in rows if row["design"] == design} for design in about}
    holes = {row["hole"] for row in rows}
    some = [design for design, ran in blocks.items() if ran and {hole for hole, *_ in ran} != holes]
    everywhere = [design for design, ran in blocks.items() if ran and design not in some]
    lines = _table([*OF_TODAY, *OF_OLDER], _ran(rows, everywhere, before), about)
    if some:
        shared = set.intersection(*(blocks[design] for design in some))
        beside = [design for design in everywhere if design in BESIDE and shared <= blocks[design]]
        there = [row for row in rows if block_of(row) in shared]
        named = " and ".join(f"`{hole.partition('@')[0]}`" for hole in sorted({hole for hole, *_ in shared}))
        lines += ["", f"Run in {named} alone so far, beside {', '.join(f'`{design}`' for design in beside)} there:", ""]
        lines += _table([*OF_TODAY, *OF_OLDER], _ran(there, [*some, *beside], before), about)
    missing = sorted((row for row in before.values() if not blocks[row["design"]]), key=_how_good, reverse=True)
    if missing:
        lines += ["", "Not run in these cells:", ""]
        lines += _table(OF_OLDER, {row["design"]: _older(row) for row in missing}, about)
    return lines


def _ran(rows: Sequence[Row], some: Sequence[str], before: Mapping[str, Row]) -> dict[str, list[str]]:
    """The figures of these designs in these rows, and of the older version, the best design first."""
    return {row["design"]: [*_figures(row), *_older(before[row["design"]])] for row in standings(rows, some)}


def _table(titles: Sequence[str], figures: Mapping[str, Sequence[str]], about: Mapping[str, str]) -> list[str]:
    """A table of designs: what each is, and its figures."""
    head = ["design", "what it is", *titles]
    rows = [[f"`{name}`", about[name], *cells] for name, cells in figures.items()]
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows)]


def _older(row: Row) -> list[str]:
    hacked = f"{row['hacked']} of {row['runs']} runs" if row["runs"] else "–"
    return [_over(row["over_rule"]), hacked]


def _figures(row: Row) -> list[str]:
    hacked = f"{row['hacked']} of {row['runs']}"
    over = [_over(row["over_rule"]), _over(row["over_static"])]
    seconds = "–" if row["cpu_s"] is None else f"{row['cpu_s']:.0f}"
    return [str(row["models"]), f"{row['gold_end']:.2f}", in_words(row["least_family"]), hacked, *over, seconds]


def _over(over: Mapping[str, float | None] | None) -> str:
    if over is None:
        return "–"
    interval = "" if over["low"] is None else f" ({over['low']:.3f} to {over['high']:.3f})"
    return f"{over['mean']:.3f}{interval}".replace("-", "−")


def _how_good(row: Row) -> float:
    """How far a design ended above the rule, itself 0; -1 for one without runs."""
    return (row["over_rule"]["mean"] if row["over_rule"] else 0.0) if row["runs"] else -1.0


def _read(path: Path) -> list[Row]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


if __name__ == "__main__":
    main()
