"""Short runs of TRL's GRPOTrainer on the embedded world, with the co-trained reward inside."""

import json
from pathlib import Path
from typing import Any

from datasets import Dataset
from rows import CORRUPTER
from transformers import AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportPrivateImportUsage]

from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_rl import CooperRewardConfig
from cooper_rl.adapters.trl import GRPOReward

GROUP = 4


def reward_config(models: Path) -> CooperRewardConfig:
    model = {"model": str(models / "reward_model"), "learning_rate": 1e-2, "max_input_tokens": 160}
    settings = {"kind": "cooper_model", "reward_model": model, "cooptimization": {"assistant": CORRUPTER}}
    return CooperRewardConfig.model_validate(settings)


def data_set(split: Any, count: int) -> Dataset:
    return Dataset.from_list(
        [
            {
                "prompt": problem.question + "\n",
                "id": problem.id,
                "question": problem.question,
                "answer": problem.answer,
                "solution": problem.solution,
                "metadata": json.dumps(problem.metadata),
            }
            for problem in arithmetic_problems(split, count)
        ]
    )


class Stop(TrainerCallback):
    """Ends training early, as an interrupt would, with the schedules of the whole run."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop = state.global_step >= self.step


def trainer_of(models: Path, output: Path, reward: GRPOReward, data: Dataset | None = None, **changed: Any) -> Any:
    settings: dict[str, Any] = {
        "output_dir": str(output),
        "max_steps": 4,
        "per_device_train_batch_size": 2 * GROUP,
        "gradient_accumulation_steps": 2,
        "num_generations": GROUP,
        "max_completion_length": 12,
        "learning_rate": 1e-3,
        "beta": 0.0,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "disable_tqdm": True,
        "seed": 0,
    }
    return GRPOTrainer(
        model=str(models / "policy"),
        reward_funcs=[reward],
        callbacks=[reward.callback],
        args=GRPOConfig(**settings | changed),
        train_dataset=data or data_set("train", 64),
        eval_dataset=data_set("test", 4),
        processing_class=AutoTokenizer.from_pretrained(models / "policy"),
    )
