"""TRL with a real instruct model and a reward model that learns: once through, and once stopped and resumed.

    python -m benchmarks.trainers.trl_real_model --model models/smollm2-135m-instruct --steps 10

Both runs must end with the same policy and the same reward model, bit for bit. The reward model starts as the same
model with a head of random weights, so its scores mean nothing: the run shows that the parts work together, not that
the policy learns.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from benchmarks.cluster.random_head import write_reward_model
from datasets import Dataset
from safetensors.torch import load_file
from transformers import AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportPrivateImportUsage]

from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_rl import CooperRewardConfig
from cooper_rl.adapters.trl import GRPOReward

ASK = "Solve the problem in one or two short steps and write the final answer as \\boxed{{}}. Problem: {question}"


class Stop(TrainerCallback):
    """Ends training early, as an interrupt would."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        control.should_training_stop = state.global_step >= self.step


def trainer_of(options: argparse.Namespace, reward_model: Path, output: Path) -> GRPOTrainer:
    settings = {
        "kind": "cooper_model",
        "reward_model": {"model": str(reward_model), "learning_rate": 1e-5, "max_input_tokens": 384},
        "cooptimization": {"positives": ["rollout", "reference_solution"], "pairs": [{"kind": "on_policy"}]},
    }
    reward = GRPOReward.from_config(CooperRewardConfig.model_validate(settings))
    rows = [
        {
            "prompt": [{"role": "user", "content": ASK.format(question=problem.question)}],
            "question": problem.question,
            "answer": problem.answer,
            "solution": problem.solution,
        }
        for problem in arithmetic_problems("train", 64)
    ]
    arguments = GRPOConfig(
        output_dir=str(output),
        max_steps=options.steps,
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=48,
        learning_rate=1e-6,
        beta=0.0,
        logging_steps=1,
        save_strategy="steps",
        save_steps=options.steps // 2,
        report_to=[],
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
        seed=0,
    )
    return GRPOTrainer(
        model=options.model,
        reward_funcs=[reward],
        callbacks=[reward.callback],
        args=arguments,
        train_dataset=Dataset.from_list(rows),
        processing_class=AutoTokenizer.from_pretrained(options.model),
    )


def weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    """Policy and reward model of a checkpoint."""
    files = sorted(checkpoint.rglob("*.safetensors"))
    return {f"{path.relative_to(checkpoint)}:{k}": v for path in files for k, v in load_file(path).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_reward_model(options.model, folder / "reward_model")
        start = time.perf_counter()
        whole = trainer_of(options, folder / "reward_model", folder / "whole")
        whole.train()
        seconds = time.perf_counter() - start
        shown = ("rewards/cooper/mean", "cooper/rule/accuracy", "cooper/pairs/count", "cooper/version")
        for row in whole.state.log_history[:-1]:
            print("step", row["step"], {name: round(row[name], 3) for name in shown if name in row}, flush=True)
        print(f"{seconds / options.steps:.1f} s a step")
        half = trainer_of(options, folder / "reward_model", folder / "stopped")
        half.add_callback(Stop(options.steps // 2))
        half.train()
        trainer_of(options, folder / "reward_model", folder / "stopped").train(resume_from_checkpoint=True)
        once, again = (weights(folder / run / f"checkpoint-{options.steps}") for run in ("whole", "stopped"))
        equal = [torch.equal(value, again[name]) for name, value in once.items()]
        print(f"{sum(equal)} of {len(equal)} tensors equal bit for bit; same names: {once.keys() == again.keys()}")


if __name__ == "__main__":
    main()
