"""One model that solves and judges, with SmolLM2-135M: does the second task help to solve where the rule judges all?

    python -m benchmarks.real_model.self_judging OUT --policy MODEL --data FOLDER --arms rule self --seeds 0

MODEL and FOLDER are the start policy and the problems of a unit of headline.md (`models/policy-23`, `data/23`). An arm
differs from `rule` in the second task alone. Finished runs are kept. Without `--arms` only the table is printed; see
../self_judging.md.
"""

import argparse
import json
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.arena.one_model import verdict_folder
from benchmarks.real_model.experiment import train_once
from benchmarks.real_model.headline import CONFIG
from benchmarks.real_model.operations import judging
from benchmarks.self_judging.self_judging import youdens_j

from cooper_audit.run.run_record import RunRecord, read_record
from cooper_base.files.durable import write_text

STEPS = 20
ASK = "\nIs this answer right?"
JUDGES = [
    "kind=cooper_model",
    "rewards=[{kind: rule}]",
    "engine={kind: 'benchmarks.arena.one_model:OneModel', words: [Ġyes, Ġno]}",
    "reward_model.input=chat",
    "reward_model.learning_rate=1.5e-5",
    "cooptimization.pairs=[{kind: on_policy, order: random}]",
    "cooptimization.positives=[rollout]",
    "cooptimization.pairs_per_problem=1",
    "cooptimization.loss={kind: 'cooper_lab.designs.cross_entropy:CrossEntropy'}",
    "cooptimization.before_policy=null",
    "cooptimization.epochs=4",
    "cooptimization.replay.pairs_per_step=8",
]
"""As in the embedded world, four updates a step; the rate of the second task is that of the first."""
ARMS = {"rule": ["kind=rule"], "self": JUDGES}


def train(out: Path, arm: str, seed: int, policy: Path, data: Path) -> None:
    """Start or continue a run, unless it is finished."""
    settings = [*ARMS[arm], *judging(data, list("+-*/")), f"policy.model={policy}", f"seed={seed}", f"steps={STEPS}"]
    if arm == "rule":
        settings.append("reward_model=null")
    else:
        settings.append(f"reward_model.model={verdict_folder(policy, out / 'verdict', ASK)}")
    train_once(out, f"{arm}-{seed}", CONFIG, [*settings, f"evaluation.every={STEPS}"])


def of_run(run: RunRecord) -> dict[str, Any]:
    """Gold on test problems, J by five steps of completions that are not learned yet, and seconds a step (median)."""
    of_step = {step: list(run.rollouts(range(step, step + 1))) for step in range(1, run.step + 1)}
    js = [youdens_j(rows, lambda row: row["gold"]) if "reward_model" in rows[0] else None for rows in of_step.values()]
    windows = [[j for j in js[at : at + 5] if j is not None] for at in range(0, len(js), 5)]
    seconds = sorted(value for _, value in run.series("time/step"))
    return {
        "run": run.directory.name,
        "gold": [round(value, 3) for _, value in run.series("test/gold_avg")],
        "training gold": [round(mean(row["gold"] for row in rows), 3) for rows in of_step.values()],
        "j": [round(mean(window), 3) if window else None for window in windows],
        "s a step": round(seconds[len(seconds) // 2], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--policy", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=[])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--write", type=Path, help="file for the results as JSON")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for seed in given.seeds:
        for arm in given.arms:
            train(given.out, arm, seed, given.policy, given.data)
    found = [of_run(read_record(path.parent)) for path in sorted((given.out / "runs").glob("*/finished"))]
    for row in found:
        print(json.dumps(row))
    if given.write is not None:
        write_text(given.write, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
