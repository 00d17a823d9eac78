"""Trains with `retrain`, from its command line; the file `emergence/generations.jsonl` that it writes is audited.

python -m benchmarks.real_runs.train_retrain FOLDER REWARD:SEED… --start POLICY --environments FOLDER [--steps N]
"""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.real_runs.plan import GROUP, LEARNING_RATE, PROBLEMS, command
from benchmarks.real_runs.retrain_parts import ENVIRONMENTS
from benchmarks.real_runs.world import MAX_TOKENS

CONFIGURATION = """[model]
model = "{start}"
lora_rank = 32
[algorithm]
advantage_mode = "grpo"
transform_mode = "none"
[training]
seed = {seed}
max_steps = {steps}
batch_size = {problems}
group_size = {group}
max_tokens = {max_tokens}
temperature = 1.0
top_p = 1.0
lr = {lr}
batch_advantage_norm = true
save_every = 0
[backend]
backend = "local"
devices = "cpu"
adapter_path = "{folder}/adapter"
[data]
source = "benchmarks.real_runs.retrain_parts.Problems"
[reward]
type = "custom"
custom_module = "benchmarks.real_runs.retrain_parts"
custom_function = "{reward}"
[logging]
log_dir = "{folder}"
"""
"""Without `batch_advantage_norm`, `retrain` leaves groups of equal rewards out of the file."""


def train(folder: Path, start: Path, name: str, seed: int, steps: int, environments: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.rglob("*.jsonl"):  # of a run that was cut off: `retrain` appends
        file.unlink()
    sizes = {"problems": PROBLEMS, "group": GROUP, "max_tokens": MAX_TOKENS, "lr": LEARNING_RATE}
    text = CONFIGURATION.format(start=start, folder=folder, reward=name, seed=seed, steps=steps, **sizes)
    (folder / "retrain.toml").write_text(text, encoding="utf-8")
    paths = f"{environments / 'retrain'}{os.pathsep}{Path(__file__).parents[2]}"
    variables = os.environ | {"PYTHONPATH": paths, ENVIRONMENTS: str(environments), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "retrain.cli", str(folder / "retrain.toml")]
    with (folder / "output.txt").open("w") as output:
        subprocess.run(words, env=variables, stdout=output, stderr=subprocess.STDOUT, check=True)


if __name__ == "__main__":
    command(__doc__, "retrain", train)
