"""Cells of the arena by family of questions, for every arm: the mean beside the least family.

    export PYTHONPATH=.:benchmarks/arena
    python benchmarks/arena/cells_by_family.py run --cells opener@heard_35 units@heard_35 --plantings 2
    python benchmarks/arena/cells_by_family.py run --cells spelled@heard_11 --seeds 20 21 --steps 40 \\
        --settings 'cooptimization.positives=[rollout]' reward_model.learning_rate=6e-4
    python benchmarks/arena/cells_by_family.py table

`run` makes the runs that are not there yet, one after another, and adds a line for each to the results: gold by family
and step of what the policy wrote, gold on the test problems, the alarm, CPU seconds. It can be killed; the same command
goes on.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.arena.one_cell import one_by_one, plan_cell
from benchmarks.arithmetic.families import by_family, least, read_results, thirds

from cooper_base.config.checking import with_overrides
from cooper_lab.arena.arena import built_in_holes, read_holes
from cooper_lab.arena.cache import default_cache
from cooper_lab.arena.cells import Plan
from cooper_lab.arena.designs import built_in_designs
from cooper_lab.arena.run_cells import read_result

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results/cells_by_family.jsonl"
SAVED = ("gold_start", "gold_end", "gold_best", "alarm", "verdict", "cpu_s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--cells", nargs="+", required=True, help="HOLE@SILENCE, or HOLE")
    run.add_argument("--arms", nargs="+", default=["rule", "cooper"])
    run.add_argument("--seeds", nargs="+", type=int, default=[0])
    run.add_argument("--plantings", type=int, default=1)
    run.add_argument("--steps", type=int, default=20)
    run.add_argument("--settings", nargs="*", default=[], help="KEY=VALUE, of every arm")
    run.add_argument("--label", default="", help="names the version, where another one is compared")
    run.add_argument("--out", type=Path, default=Path("runs/cells"))
    run.add_argument("--cache", type=Path, default=default_cache())
    for command in (run, commands.add_parser("table")):
        command.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.command == "run":
        for planting in range(given.plantings):
            for cell in given.cells:
                measure(planned(given, cell, planting), given.label, given.results)
    print("\n".join(table_of(read_results(given.results))))


def planned(given: argparse.Namespace, name: str, planting: int) -> Plan:
    holes = built_in_holes() | read_holes(HERE / "holes.yaml")
    designs = {arm: built_in_designs()[arm] for arm in given.arms}
    settings = with_overrides({"steps": given.steps}, given.settings)
    return plan_cell(designs, name, holes, given.seeds, given.out, given.cache, settings, planting)


def measure(of_cell: Plan, label: str, results: Path) -> None:
    """Plant what is missing, run what is missing, and add it to the results."""
    for cell in one_by_one(of_cell):
        result = read_result(cell.result_path)
        key = {"label": label} | {name: result[name] for name in ("design", "hole", "planting", "seed", "steps")}
        if not any(key.items() <= row.items() for row in read_results(results)):
            row = key | {name: result[name] for name in SAVED} | {"families": by_family(cell.directory)}
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(*table_of([row])[2:], flush=True)


def table_of(rows: list[dict[str, Any]]) -> list[str]:
    """The results as a Markdown table, a line for each run."""
    lines = ["| cell | arm | version | planting | seed | steps | gold | least family | `thousands` | alarm | CPU s |"]
    lines.append("|" + "---|" * 11)
    for row in sorted(rows, key=lambda row: [row[name] for name in ("hole", "design", "label", "planting", "seed")]):
        lowest, name = least(row["families"], row["steps"])
        thousands = " ".join(f"{value:.2f}" for value in thirds(row["families"]["thousands"], row["steps"]))
        cells = [
            f"`{row['hole']}`",
            row["design"],
            row["label"] or "now",
            row["planting"],
            row["seed"],
            row["steps"],
            f"{row['gold_end']:.3f}",
        ]
        cells += [f"{lowest:.2f} {name}", thousands, row["alarm"] or "–", round(row["cpu_s"])]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


if __name__ == "__main__":
    main()
