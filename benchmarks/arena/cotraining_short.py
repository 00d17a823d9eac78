"""Every way to learn a reward for eight short steps in the demo's world, to see that it works: no comparison.

    PYTHONPATH=benchmarks/arena python benchmarks/arena/cotraining_short.py

The demo's policy and reward model, nothing planted; the rule judges 35 % of the problems; 16 problems a step, seed 0.
No solutions and no assistant, but VARL's solutions. Implicit reward models start at a twin trained by `train_twin`. The
results go to `benchmarks/results/cotraining_short.json`, arm by arm; the same command runs what is missing.
"""

import argparse
import json
import logging
import os
from pathlib import Path
from typing import Any

from cooper_base.files.durable import write_text
from cooper_base.packages import set_log_level
from cooper_lab.arena.cache import default_cache
from cooper_lab.arena.designs import built_in_designs, fill_in
from cooper_lab.arena.ends import acceptance, of_policy
from cooper_lab.arena.holes import read_hole
from cooper_lab.arithmetic.arms import RULE
from cooper_lab.arithmetic.twins import train_twin
from cooper_lab.arithmetic.world import ASSETS, run_settings
from cooper_rl import CooperTrainer, build_config, merge, read_metrics

SAVED = Path(__file__).parents[1] / "results" / "cotraining_short.json"
ARMS = ("rule", "static", "cooper", "prime", "iterated_5", "best_worst", "varl", "static_fpo", "static_grad_reg")
ARMS += ("appeals", "ipvrm", "prime_unpaid", "noise_corrected", "cooper_fpo", "static_fpo_relaxed", "prime_after")
RETRAINED = {"cooper": [], "cooper_fpo": [], "iterated_5": [{"kind": "iterated", "every": 5}]}
SHORT: dict[str, Any] = {"steps": 8, "problems_per_step": 16, "rule": RULE, "evaluation": {"every": 0}}


def settings_of(arm: str, implicit: Path, output_dir: Path) -> dict[str, Any]:
    paths = {"$reward_model": str(ASSETS / "reward_model")}
    paths |= {f"$reward_model_{twin}": str(implicit) for twin in ("implicit", "ipvrm")}
    stage_2: dict[str, Any] = {} if arm == "varl" else {"positives": ["rollout"]}
    if arm in RETRAINED:
        stage_2["pairs"] = [{"kind": "on_policy"}, *RETRAINED[arm]]
    chosen = merge(fill_in(built_in_designs()[arm].settings, paths), {**SHORT, "cooptimization": stage_2})
    return run_settings(arm, output_dir, 0, chosen)


def run(settings: dict[str, Any]) -> dict[str, Any]:
    """Gold on the world's test problems after the run (the mean over families), and what its reward model accepts."""
    hole, before = read_hole({"kind": "answer_lists"}), os.times()
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        model = trainer.parts.reward.model
        accepted = [None if model is None else acceptance(hole, model, 0)]
        trainer.fit()
        accepted.append(None if model is None else acceptance(hole, model, 0))
        policy = trainer.parts.policy
        ends = of_policy(hole, policy.model, policy.tokenizer, 0)  # pyright: ignore[reportAttributeAccessIssue]
    after, families = os.times(), ends["test_families"]
    training = [round(row["gold/accuracy"], 3) for row in read_metrics(trainer.directory) if "gold/accuracy" in row]
    ends |= {"gold_end": round(sum(families.values()) / len(families), 4), "gold_train": training}
    seconds = after.user + after.system - before.user - before.system
    return ends | {"start": accepted[0], "end": accepted[1], "cpu_s": round(seconds, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/cotraining-short"))
    parser.add_argument("--implicit", type=Path, default=default_cache() / "twin-implicit-short")
    arguments = parser.parse_args()
    set_log_level(logging.ERROR)
    if not arguments.implicit.exists():
        train_twin("implicit", arguments.implicit, 0)
    found = json.loads(SAVED.read_text(encoding="utf-8")) if SAVED.is_file() else {}
    for arm in ARMS:
        if arm not in found:
            found[arm] = run(settings_of(arm, arguments.implicit, arguments.out))
            write_text(SAVED, json.dumps(found, indent=1) + "\n")
            print(arm, json.dumps(found[arm]), flush=True)


if __name__ == "__main__":
    main()
