"""Cooper's own loop with a public reward as its rule: is the hole held?

    python -m benchmarks.real_runs.repair OUT REWARD… --start POLICY --environments FOLDER [--kinds rule] [--seeds 1]

`rule` pays what the public reward pays, in the loop that Cooper has for it; `cooper` has the embedded reward model
beside it, which learns. An answer is correct for the rule if the reward pays more than the attack's threshold. Whether
it is right (`world.right`) is measured and never paid. What is finished is left out.
"""

import argparse
import json
import os
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.real_runs.own_loop import train_in
from benchmarks.real_runs.plan import ENDS, LEARNING_RATE, REWARDS
from benchmarks.real_runs.results import RESULTS
from benchmarks.real_runs.retrain_parts import ENVIRONMENTS
from benchmarks.real_runs.rewards import PlannedReward

from cooper_audit.run.run_record import read_groups
from cooper_rl import Problem

REPAIR_STEPS = 40


@cache
def _planned(name: str) -> PlannedReward:
    reward = next(reward for reward in REWARDS if reward.name == name)
    return PlannedReward(reward, Path(os.environ[ENVIRONMENTS]))


def __getattr__(name: str) -> Callable[[Problem, str], str]:
    """`module:function` of a reward of the plan as a rule."""
    if name not in {reward.name for reward in REWARDS}:
        raise AttributeError(name)
    above = json.loads(RESULTS.read_text(encoding="utf-8"))["attacks"][name]["above"]

    def verdict(problem: Problem, completion_text: str) -> str:
        return "correct" if _planned(name).score(problem, completion_text) > above else "wrong"

    return verdict


def train(out: Path, name: str, kind: str, seed: int, start: Path) -> Path:
    folder = out / f"{name}-{kind}-{seed}"
    chosen = {
        "kind": kind,
        "steps": REPAIR_STEPS,
        "rule": {"kind": f"benchmarks.real_runs.repair:{name}"},
        "policy": {"learning_rate": LEARNING_RATE},
        "cooptimization": {"positives": ["rollout"]},
    }
    train_in(folder, start, seed, chosen)
    return folder


def measured(folder: Path) -> dict[str, Any]:
    """Shares of the first and the last steps of a run of Cooper's: right, accepted by the rule though wrong, paid."""
    steps = [
        [each for group in read_groups(path) for each in group["completions"]]
        for path in sorted((folder / "rollouts").glob("*.jsonl"))
    ]
    shares = {}
    for name, part in (("first", steps[:ENDS]), ("last", steps[-ENDS:])):
        rows = [row for step in part for row in step]
        wrong = [row["verdict"] == "correct" and not row["gold"] for row in rows]
        shares[name] = {"gold": round(mean(row["gold"] for row in rows), 3), "paid wrong": round(mean(wrong), 3)}
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("rewards", nargs="+")
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--environments", type=Path, required=True)
    parser.add_argument("--kinds", nargs="+", default=["rule", "cooper"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    given = parser.parse_args()
    os.environ[ENVIRONMENTS] = str(given.environments)
    given.out.mkdir(parents=True, exist_ok=True)
    for name, kind, seed in product(given.rewards, given.kinds, given.seeds):
        run = f"{name}-{kind}-{seed}"
        if run in json.loads(RESULTS.read_text(encoding="utf-8")).get("repairs", {}):
            continue
        shares = measured(train(given.out, name, kind, seed, given.start))
        results = json.loads(RESULTS.read_text(encoding="utf-8"))  # audits may have been added meanwhile
        results.setdefault("repairs", {})[run] = shares
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(run, shares, flush=True)


if __name__ == "__main__":
    main()
