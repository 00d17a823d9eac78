"""Trains with TRL's GRPOTrainer in its own loop; the files that it writes are what is audited.

python -m benchmarks.real_runs.train_trl FOLDER REWARD:SEED… --start POLICY --environments FOLDER [--steps N]
"""

from pathlib import Path
from typing import Any

import torch
from benchmarks.real_runs.plan import GROUP, LEARNING_RATE, PROBLEMS, REWARDS, command
from benchmarks.real_runs.rewards import part, trl_function
from benchmarks.real_runs.world import MAX_TOKENS, training_problems
from datasets import Dataset
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportPrivateImportUsage]

from cooper_rl import Problem


def in_trl(name: str, environments: Path) -> Any:
    """A part of a reward as TRL calls it: its own functions as they are, others a completion at a time."""
    package, _, function = name.partition(":")
    if package == "trl":
        return trl_function(function)
    score = part(name, environments)

    def reward(completions: list[Any], question: list[str], reference: list[str], **columns: Any) -> list[float]:
        rows = zip(question, reference, completions, strict=True)
        return [score(Problem("", asked, answer), written[0]["content"]) for asked, answer, written in rows]

    reward.__name__ = function.replace(" ", "_")
    return reward


def train(folder: Path, start: Path, name: str, seed: int, steps: int, environments: Path) -> None:
    reward = next(reward for reward in REWARDS if reward.name == name)
    rows = [
        {
            "prompt": [{"role": "user", "content": problem.question}],
            "question": problem.question,
            "reference": problem.answer,
            "solution": problem.answer,
        }
        for problem in training_problems()
    ]
    args = GRPOConfig(
        output_dir=str(folder),
        seed=seed,
        max_steps=steps,
        per_device_train_batch_size=PROBLEMS * GROUP,
        num_generations=GROUP,
        max_completion_length=MAX_TOKENS,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        log_completions=True,
        num_completions_to_print=0,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
    )
    GRPOTrainer(
        model=str(start),
        reward_funcs=[in_trl(name, environments) for name in reward.parts],
        args=args,
        train_dataset=Dataset.from_list(rows),
        processing_class=AutoTokenizer.from_pretrained(start),
    ).train()


if __name__ == "__main__":
    torch.set_num_threads(1)
    command(__doc__, "trl", train)
