"""Which part of stage 2 repairs the demo's reward model: the demo's world with parts of stage 2 added and removed.

    python benchmarks/arithmetic/ablation.py --seeds 0 1 2 3 4 --output-dir runs/ablation

Every run shares the demo's policy, reward model and problems, and differs only in what its row names. Runs
that are already on disk are not repeated. Prints gold accuracy on test problems after the last step, by seed.
"""

import argparse
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cooper_audit.run.run_record import read_metrics
from cooper_lab.arithmetic.arms import run_all
from cooper_lab.arithmetic.world import ASSETS, run_settings

LABELLED = {"replay": {"labelled": str(ASSETS / "labelled.jsonl")}}
ABLATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "paper": ("paper", {}),
    "paper + labelled replay": ("paper", LABELLED),
    "paper + reference solutions": ("paper", {"positives": ["rollout", "reference_solution"]}),
    "paper + anchor": ("paper", {"loss": {"anchor": 0.5}}),
    "paper + on-policy negatives": ("paper", {"pairs": [{"kind": "assistant"}, {"kind": "on_policy"}]}),
    "cooper": ("cooper_model", {}),
    "cooper_light": ("cooper_light", {}),
    "cooper_light + labelled replay": ("cooper_light", LABELLED),
    "cooper_light - reference solutions": ("cooper_light", {"positives": ["rollout"]}),
    "cooper_light - anchor": ("cooper_light", {"loss": {"anchor": 0.0}}),
    "cooper_light - replay": ("cooper_light", {"replay": {"pairs_per_step": 0}}),
    "cooper_light - assistant": ("cooper_light", {"pairs": [{"kind": "on_policy"}]}),
    "cooper_light - on-policy negatives": ("cooper_light", {"pairs": [{"kind": "assistant"}]}),
}
"""A row's kind, in which the reward model alone pays, and the settings of `cooptimization` that differ from it."""


def settings_of(row: str, output_dir: Path, seed: int) -> dict[str, Any]:
    kind, cooptimization = ABLATIONS[row]
    name = row.replace(" + ", "+").replace(" - ", "-").replace(" ", "_")
    chosen = {"kind": kind, "cooptimization": cooptimization}
    return run_settings(name, output_dir / f"seed-{seed}", seed, chosen)


def gold(settings: dict[str, Any]) -> list[float]:
    """Gold accuracy on the test problems at every evaluation; empty for a run that has not ended."""
    rows = read_metrics(Path(settings["output_dir"]) / settings["name"])
    done = bool(rows) and rows[-1]["step"] == settings["steps"]
    return [row["test/gold_avg"] for row in rows if "test/gold_avg" in row] if done else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--rows", nargs="+", choices=list(ABLATIONS), default=list(ABLATIONS))
    parser.add_argument("--output-dir", type=Path, default=Path("runs/ablation"))
    given = parser.parse_args()
    runs = {(row, seed): settings_of(row, given.output_dir, seed) for seed in given.seeds for row in given.rows}
    run_missing(list(runs.values()))
    ends = {row: [gold(runs[row, seed])[-1] for seed in given.seeds] for row in given.rows}
    print_table("stage 2", given.seeds, ends)


def run_missing(runs: Sequence[dict[str, Any]]) -> None:
    """Run those that have not ended, from the beginning, and show the steps done."""
    waiting = [settings for settings in runs if not gold(settings)]
    for settings in waiting:
        shutil.rmtree(Path(settings["output_dir"]) / settings["name"], ignore_errors=True)
    total = sum(settings["steps"] for settings in waiting)
    run_all(waiting, lambda done: print(f"{done} of {total} steps", end="\r", flush=True))


def print_table(title: str, seeds: Sequence[int], ends: Mapping[str, Sequence[float]]) -> None:
    """A row a name, with its gold at the end by seed and on average."""
    print(f"\n| {title} | " + " | ".join(f"seed {seed}" for seed in seeds) + " | mean |")
    print("|---" * (len(seeds) + 2) + "|")
    for row, golds in ends.items():
        print(f"| {row} | " + " | ".join(f"{end:.2f}" for end in golds) + f" | {sum(golds) / len(golds):.3f} |")


if __name__ == "__main__":
    main()
