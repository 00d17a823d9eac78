"""Tells when the reward-hacking alarm goes off in recorded demo runs, and how much accuracy was lost by then.

    for seed in 0 1 2 3 4; do cooper demo --seed $seed --out runs/demo-$seed; done
    python benchmarks/hacking_alarm.py runs/demo-0 runs/demo-1 runs/demo-2 runs/demo-3 runs/demo-4

Reads each run's `metrics.jsonl` with the code that watches a run, and prints a table. Gold accuracy is that of a step's
256 training completions. Half of it is lost at the first step whose accuracy is at most half of the best before it.
"""

import argparse
from pathlib import Path
from typing import Any

from cooper_lab.arithmetic.arms import ARMS
from cooper_rl.observe.run_record import read_metrics
from cooper_rl.observe.watch import HACKING, Firing, Watch

GOLD = "gold/accuracy"


def alarm(rows: list[dict[str, Any]]) -> Firing | None:
    """The first time the default rules warn of reward hacking."""
    watch = Watch([])
    for row in rows:
        firings, _ = watch.observe(row["step"], row)
        for firing in firings:
            if firing.rule.metric == HACKING:
                return firing
    return None


def half_lost(rows: list[dict[str, Any]]) -> int | None:
    """The first step whose gold accuracy is at most half of the best before it."""
    best = 0.0
    for row in rows:
        if row[GOLD] <= best / 2:
            return row["step"]
        best = max(best, row[GOLD])
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demos", nargs="+", type=Path, help="output folders of `cooper demo`")
    print("| demo | run | gold, start | best | alarm at step | gold then | half lost at step | sign |")
    print("|---|---|---|---|---|---|---|---|")
    for demo in parser.parse_args().demos:
        for arm in ARMS:
            rows = read_metrics(demo / arm)
            gold = {row["step"]: row[GOLD] for row in rows if GOLD in row}
            if not gold:
                continue
            fired, lost = alarm(rows), half_lost([row for row in rows if GOLD in row])
            found = (
                (fired.step, f"{gold[fired.step]:.2f}", lost or "never", "; ".join(fired.signs))
                if fired
                else ("none", "", lost or "never", "")
            )
            cells = (demo.name, arm, f"{gold[min(gold)]:.2f}", f"{max(gold.values()):.2f}", *found)
            print("| " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    main()
