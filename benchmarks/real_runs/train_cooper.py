"""Trains SmolLM2-135M with Cooper's own loop, paid by the rewards as they are; the run's rollouts are what is audited.

python -m benchmarks.real_runs.train_cooper FOLDER REWARD:SEED… --start POLICY --environments FOLDER [--steps N]
"""

import os
import shutil
from pathlib import Path

import torch
from benchmarks.real_runs.own_loop import train_in
from benchmarks.real_runs.plan import LARGER_LEARNING_RATE, command
from benchmarks.real_runs.retrain_parts import ENVIRONMENTS


def train(folder: Path, start: Path, name: str, seed: int, steps: int, environments: Path) -> None:
    os.environ[ENVIRONMENTS] = str(environments)
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was cut off
    chosen = {
        "kind": "function",
        "rewards": [f"benchmarks.real_runs.retrain_parts:{name}"],
        "reward_model": None,
        "steps": steps,
        "policy": {"learning_rate": LARGER_LEARNING_RATE, "autocast": "bfloat16", "tokens_per_microbatch": 2048},
        "checkpoint": {"every": 0},
    }
    train_in(folder, start, seed, chosen)


if __name__ == "__main__":
    torch.set_num_threads(1)
    command(__doc__, "cooper", train)
