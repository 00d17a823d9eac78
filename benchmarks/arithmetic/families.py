"""The demo's arms by family of questions: a mean can be healthy while one family is lost.

    python benchmarks/arithmetic/families.py run --arms cooper --seeds 61 62 63 --steps 90 --output-dir runs/families
    python benchmarks/arithmetic/families.py table [benchmarks/results/families.jsonl]

`run` makes the runs that are not there yet, one after another, and adds a line for each to the results: gold by family
and step of what the policy wrote, gold on the test problems, the alarm, CPU seconds. A run's steps do not depend on how
many follow, so one of 120 steps is one of 40 as well. `table` prints, for each run, the test accuracy by length, the
family with the least gold in the last five steps, and `thousands` in the first, the middle and the last five.
"""

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from cooper_audit.run.hacking_alarm import HACKING
from cooper_audit.run.run_record import read_events
from cooper_lab.arithmetic.arms import arm_settings
from cooper_lab.arithmetic.families import FEWEST, LAST
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_rl import CooperTrainer, build_config, read_metrics

RESULTS = Path("benchmarks/results/families.jsonl")
WINDOW = LAST
"""Steps of which a share is the mean: a family has 16 to 272 completions in five."""
SAMPLES = 8
"""Completions of a problem in a step."""
LENGTHS = (40, 90, 120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--arms", nargs="+", default=["cooper"])
    run.add_argument("--seeds", nargs="+", type=int, required=True)
    run.add_argument("--steps", type=int, default=90)
    run.add_argument("--label", default="", help="names the version, where another one is compared")
    run.add_argument("--output-dir", type=Path, default=Path("runs/families"))
    run.add_argument("--results", type=Path, default=RESULTS)
    table = commands.add_parser("table")
    table.add_argument("results", nargs="?", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.command == "table":
        print("\n".join(table_of(read_results(given.results))))
        return
    for seed in given.seeds:
        for arm in given.arms:
            key = {"label": given.label, "arm": arm, "seed": seed, "steps": given.steps}
            if not any(key.items() <= row.items() for row in read_results(given.results)):
                row = key | measured(arm, given.output_dir / f"{given.label or 'now'}-{seed}-{given.steps}", key)
                with given.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print("\n".join(table_of([row])[2:]), flush=True)


def read_results(path: Path) -> list[dict[str, Any]]:
    """The saved runs."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def measured(arm: str, output_dir: Path, key: dict[str, Any]) -> dict[str, Any]:
    """Run an arm of the demo and count what it wrote."""
    settings = arm_settings(arm, output_dir, key["seed"], {"steps": key["steps"], "evaluation": {"every": 10}})
    began = time.process_time()
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        trainer.fit()
    cpu_s = time.process_time() - began
    folder = output_dir / arm
    test = {str(row["step"]): round(row["test/gold_avg"], 4) for row in read_metrics(folder) if "test/gold_avg" in row}
    alarm = next((event["step"] for event in read_events(folder) if event["metric"] == HACKING), None)
    return {"test": test, "families": by_family(folder), "alarm": alarm, "cpu_s": round(cpu_s)}


def by_family(folder: Path) -> dict[str, list[list[int]]]:
    """For each family, the completions and the right ones among them by step."""
    family = {problem.id: problem.metadata["family"] for problem in arithmetic_problems("train", 4000)}
    steps: list[Counter[tuple[str, bool]]] = []
    for path in sorted((folder / "rollouts").glob("*.jsonl")):
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        steps.append(Counter((family[row["problem"]], c["gold"]) for row in rows for c in row["completions"]))
    return {
        name: [[step[name, True] + step[name, False], step[name, True]] for step in steps]
        for name in sorted(set(family.values()))
    }


def share(counts: list[list[int]], first: int, last: int) -> float:
    """The share of right completions in the steps from `first` to `last`, counted from 1; NaN without completions."""
    total, right = map(sum, zip(*counts[first - 1 : last], strict=True))
    return right / total if total else float("nan")


def least(families: dict[str, list[list[int]]], steps: int) -> tuple[float, str]:
    """The least share of right completions in the last of so many steps, and its family: of the families with as many
    problems there as `gold_by_family` asks for."""
    first = steps - WINDOW + 1
    enough = {
        name: counts
        for name, counts in families.items()
        if sum(total for total, _ in counts[first - 1 : steps]) >= FEWEST * SAMPLES
    }
    return min((share(counts, first, steps), name) for name, counts in enough.items())


def thirds(counts: list[list[int]], steps: int) -> list[float]:
    """The share of right completions in the first, the middle and the last steps of so many."""
    middle = steps // 2
    return [share(counts, 1, WINDOW), share(counts, middle - 2, middle + 2), share(counts, steps - 4, steps)]


def table_of(rows: list[dict[str, Any]]) -> list[str]:
    """The results as a Markdown table, a line for each run."""
    lines = ["| arm | seed | test gold after 40, 90, 120 steps | least family | `thousands` | alarm |"]
    lines.append("|" + "---|" * 6)
    for row in sorted(rows, key=lambda row: (row["arm"], row["label"], row["seed"], row["steps"])):
        golds = ", ".join(f"{row['test'][str(step)]:.3f}" for step in LENGTHS if step <= row["steps"])
        lowest, name = least(row["families"], row["steps"])
        thousands = " ".join(f"{value:.2f}" for value in thirds(row["families"]["thousands"], row["steps"]))
        arm = f"{row['arm']}, {row['label']}" if row["label"] else row["arm"]
        cells = [arm, row["seed"], golds, f"{lowest:.2f} {name}", thousands, row["alarm"] or "–"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


if __name__ == "__main__":
    main()
