"""Trains SmolLM2-135M with Cooper's own loop, paid by the rewards as they are; the run's rollouts are what is audited.

python -m benchmarks.real_runs.train_cooper FOLDER REWARD:SEED… --start POLICY --environments FOLDER [--steps N]
"""

import os
import shutil
from pathlib import Path
from typing import Any

import torch
from benchmarks.real_runs.plan import GROUP, LARGER_LEARNING_RATE, PROBLEMS, command
from benchmarks.real_runs.retrain_parts import ENVIRONMENTS
from benchmarks.real_runs.world import MAX_TOKENS, write_problems

from cooper_lab.arithmetic.world import run_settings
from cooper_rl import CooperTrainer, build_config


def train(folder: Path, start: Path, name: str, seed: int, steps: int, environments: Path) -> None:
    os.environ[ENVIRONMENTS] = str(environments)
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was cut off
    folder.parent.mkdir(parents=True, exist_ok=True)
    write_problems(folder.parent / "problems.jsonl")
    read = {"source": str(folder.parent / "problems.jsonl"), "gold": "benchmarks.real_runs.world:right"}
    chosen: dict[str, Any] = {
        "kind": "function",
        "rewards": [f"benchmarks.real_runs.retrain_parts:{name}"],
        "reward_model": None,
        "steps": steps,
        "problems_per_step": PROBLEMS,
        "policy": {
            "model": str(start),
            "learning_rate": LARGER_LEARNING_RATE,
            "autocast": "bfloat16",
            "tokens_per_microbatch": 2048,
        },
        "problems": read | {"prompt": {"template": "{question}\n", "chat": False}},
        "test_problems": None,
        "evaluation": {"every": 0},
        "checkpoint": {"every": 0},
        "rollout": {"n": GROUP, "max_tokens": MAX_TOKENS},
    }
    settings = run_settings(folder.name, folder.parent, seed, chosen)
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        trainer.fit()


if __name__ == "__main__":
    torch.set_num_threads(1)
    command(__doc__, "cooper", train)
