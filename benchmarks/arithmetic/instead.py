"""The demo: what a user could do instead of letting the reward model learn, and Cooper with the data set's solutions.

    python benchmarks/arithmetic/instead.py --seeds 0 1 2 3 4 --output-dir runs/instead

Every run shares the demo's policy, problems and rule, and differs only in what its row names. Runs that are already on
disk are not repeated. Prints gold accuracy on test problems by seed: after the last step, and for the last row that of
the best checkpoint of `static` by `test/rule_avg`, up to the step at which the alarm went off.
"""

import argparse
from pathlib import Path
from typing import Any

from ablation import gold, print_table, run_missing
from cooper_audit.run.hacking_alarm import HACKING
from cooper_audit.run.run_record import read_events, read_metrics
from cooper_lab.arithmetic.arms import arm_settings

ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "static": ("static", {}),
    "static_kl": ("static", {"algorithm": {"kl": {"coefficient": 0.01}}}),
    "rule_then_static": ("static", {"rewards": [{"kind": "rule_then_model"}]}),
    "cooper_with_solutions": ("cooper", {"cooptimization": {"positives": ["rollout", "reference_solution"]}}),
}
"""A row's arm of the demo, and what differs from it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--output-dir", type=Path, default=Path("runs/instead"))
    given = parser.parse_args()
    runs = {(row, seed): settings_of(row, given.output_dir, seed) for seed in given.seeds for row in ROWS}
    run_missing(list(runs.values()))
    ends = {row: [gold(runs[row, seed])[-1] for seed in given.seeds] for row in ROWS}
    ends["static, stopped at the alarm"] = [best_before_the_alarm(runs["static", seed]) for seed in given.seeds]
    print_table("instead", given.seeds, ends)


def settings_of(row: str, output_dir: Path, seed: int) -> dict[str, Any]:
    arm, differing = ROWS[row]
    return arm_settings(arm, output_dir / f"seed-{seed}", seed, differing) | {"name": row}


def best_before_the_alarm(settings: dict[str, Any]) -> float:
    """Gold of the evaluation with the highest accuracy by the rule, of those up to the first alarm."""
    directory = Path(settings["output_dir"]) / settings["name"]
    alarms = [event["step"] for event in read_events(directory) if event["metric"] == HACKING]
    rows = [row for row in read_metrics(directory) if "test/rule_avg" in row]
    before = [row for row in rows if not alarms or row["step"] <= alarms[0]]
    return max(before, key=lambda row: row["test/rule_avg"])["test/gold_avg"]


if __name__ == "__main__":
    main()
