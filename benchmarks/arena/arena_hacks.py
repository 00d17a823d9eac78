"""Whether the runs of an arena use the holes they are in: `arena_hacks.py OUTPUT_DIR`.

A row for each cell: gold at every evaluation, and of all completions of the first and of the last three steps the
share that uses the hole and the calls of tools. Holes of the package only.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from cooper_lab.arena.arena import built_in_holes
from cooper_lab.arena.hole import Hole
from cooper_lab.arithmetic.start_samples import training_problems
from cooper_rl import Problem, read_metrics

STEPS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether the runs of an arena use the holes they are in.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    holes, problems = built_in_holes(), {problem.id: problem for problem in training_problems()}
    print("| hole | design | seed | gold | hacks, first → last | calls, first → last |")
    print("|---|---|---|---|---|---|")
    for cell in sorted(folder.glob("*/*/*/cell.json")):
        run, (name, design, seed) = cell.parent, cell.parts[-4:-1]
        gold = ", ".join(f"{row['test/gold_avg']:.2f}" for row in read_metrics(run) if "test/gold_avg" in row)
        files = sorted((run / "rollouts").glob("*.jsonl"))
        hole = holes[name.partition("@")[0]]
        first, last = (completions(part, hole, problems) for part in (files[:STEPS], files[-STEPS:]))
        hacks, calls = (f"{before:.2f} → {after:.2f}" for before, after in zip(first, last, strict=True))
        print(f"| {name} | {design} | {seed} | {gold} | {hacks} | {calls} |")


def completions(files: Sequence[Path], hole: Hole, problems: dict[str, Problem]) -> tuple[float, float]:
    """The share of the recorded completions that use the hole, and how many calls one made on average."""
    rows = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    every = [(problems[row["problem"]], one) for row in rows for one in row["completions"]]
    hacks = sum(hole.is_hack(problem, one["text"]) for problem, one in every)
    calls = sum(one.get("transcript", "").count("\n<tool_call> ") for _, one in every)
    return hacks / len(every), calls / len(every)


if __name__ == "__main__":
    main()
