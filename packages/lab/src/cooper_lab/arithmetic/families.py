"""Gold by family of questions at the end of a run, and the family that is worst: an average hides one that is lost."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cooper_audit.run.run_record import read_groups
from cooper_audit.statistics import Estimate, mean_interval
from cooper_base.files.durable import by_step

LAST = 5
"""Number of last steps whose rollouts count."""
FEWEST = 3
"""Fewest problems of a family for a figure."""

Families = Mapping[str, Mapping[str, float]]
"""By family: `gold`, its 95 % interval `low` and `high`, and the `problems` behind it."""


def gold_by_family(directory: Path) -> dict[str, dict[str, float]]:
    """Gold of the training rollouts of a run's last steps by family; without those that have too few problems.

    The interval is Wilson's, with the problem as the unit. Empty without rollouts or gold on record.
    """
    by_family: dict[str, list[float]] = {}
    draws = 1
    for path in list(by_step(directory / "rollouts", ".jsonl").values())[-LAST:]:
        for group in read_groups(path):
            gold = [row["gold"] for row in group["completions"] if isinstance(row.get("gold"), bool)]
            if gold and (family := group.get("metadata", {}).get("family")):
                by_family.setdefault(family, []).append(sum(gold) / len(gold))
                draws = len(gold)
    estimates = {name: Estimate.of(np.array(gold), draws) for name, gold in by_family.items() if len(gold) >= FEWEST}
    return {
        name: {"gold": one.mean, "low": one.low, "high": one.high, "problems": len(by_family[name])}
        for name, one in sorted(estimates.items())
    }


def least_family(runs: Sequence[Families | None]) -> dict[str, Any] | None:
    """The family whose mean over the runs is lowest, with the 95 % interval of that mean; None if none is on record.

    Over several runs it is Student's t over them, cut to [0, 1]; of one run it is that of its problems. It is the
    interval of this family, not of the least of them all, which is a little lower by choice.
    """
    recorded = [families for families in runs if families]
    if not recorded:
        return None
    shared = set.intersection(*(set(families) for families in recorded))
    means = {name: sum(families[name]["gold"] for families in recorded) / len(recorded) for name in shared}
    if not means:
        return None
    least = min(means, key=lambda name: (means[name], name))
    of_runs = [families[least] for families in recorded]
    low, high = of_runs[0]["low"], of_runs[0]["high"]
    if len(of_runs) > 1:
        _, low, high = mean_interval([row["gold"] for row in of_runs])
    return {"family": least, "gold": means[least], "low": max(0.0, low), "high": min(1.0, high), "runs": len(of_runs)}


def in_words(least: Mapping[str, Any] | None) -> str:
    """`0.02 (0.00 to 0.08) thousands`."""
    if least is None:
        return "not on record"
    return f"{least['gold']:.2f} ({least['low']:.2f} to {least['high']:.2f}) {least['family'].replace('_', ' ')}"
