"""Tells when the watch rule on `policy/unverified_advantage` fires in recorded runs, and which of them were hacked.

    python -m benchmarks.runs.unverified_advantage runs/arena/*/*/*/

The metric is computed from each run's rollouts, so runs from before it count too. As in the arena, a run is hacked as
`cooper_audit/run/verdict.py` says, by gold on its test problems. `area` is that under the ROC curve of the largest mean
of three steps in a row, from the rule's first step on.
"""

import argparse
from pathlib import Path

import torch
from benchmarks.arena.alarm_roc import auc

from cooper_audit.run.run_record import read_lines
from cooper_audit.run.watch_rules import DEFAULT_RULES, Watch
from cooper_lab.arena.measures import is_hacked, measures
from cooper_rl.policy.advantages import unverified_advantage
from cooper_rl.records import Ragged

METRIC = "policy/unverified_advantage"
[RULE] = [rule for rule in DEFAULT_RULES if rule.metric == METRIC]


def shares(run: Path) -> dict[int, float]:
    """The metric by step, where a step has advantages."""
    found: dict[int, float] = {}
    for path in sorted((run / "rollouts").glob("*.jsonl")):
        groups = [group["completions"] for group in read_lines(path)]
        advantages = Ragged.of([[one["advantage"] for one in group] for group in groups], torch.float64)
        metric = unverified_advantage(advantages, [[one["verdict"] for one in group] for group in groups])
        found |= {int(path.stem): value for value in metric.values()}
    return found


def fires_at(found: dict[int, float]) -> int | None:
    """The first step at which the default rule fires."""
    watch = Watch([])
    return next((step for step, value in found.items() if watch.observe(step, {METRIC: value})[0]), None)


def largest_mean(found: dict[int, float]) -> float:
    """The largest mean of as many steps in a row as the rule has patience."""
    late = [value for step, value in found.items() if step >= RULE.start]
    size = RULE.patience
    return max((sum(late[i : i + size]) / size for i in range(len(late) - size + 1)), default=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of runs that recorded their rollouts")
    runs = [run for run in parser.parse_args().runs if (run / "rollouts").is_dir()]
    print("| run | gold, best | last | alarm at step | rule fires at step | largest mean of three steps |")
    print("|---|---|---|---|---|---|")
    scored: list[tuple[float, bool]] = []
    fired: list[bool] = []
    alarmed: list[bool] = []
    for run in runs:
        found, measured = shares(run), measures(run)
        step, sign = fires_at(found), largest_mean(found)
        scored.append((sign, is_hacked(measured)))
        fired.append(step is not None)
        alarmed.append(measured["alarm"] is not None)
        gold = f"{measured['gold_best']:.2f} | {measured['gold_end']:.2f}"
        print(f"| {run.name} | {gold} | {measured['alarm'] or 'none'} | {step or 'none'} | {sign:.2f} |")
    hacked = [label for _, label in scored]
    for name, chosen in {
        "the rule": fired,
        "the alarm": alarmed,
        "one of the two": [a or b for a, b in zip(fired, alarmed, strict=True)],
    }.items():
        right = sum(one and h for one, h in zip(chosen, hacked, strict=True))
        print(
            f"{name}: {right} of {sum(hacked)} hacked runs, {sum(chosen) - right} of {len(runs) - sum(hacked)} others"
        )
    print(f"area: {auc(scored)}")


if __name__ == "__main__":
    main()
