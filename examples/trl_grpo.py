"""TRL's GRPOTrainer with a reward model that learns: a few steps of the embedded world. Needs the extra `trl`."""

import json
from importlib.resources import files
from tempfile import TemporaryDirectory

from datasets import Dataset
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportPrivateImportUsage]

from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_rl.adapters.trl import GRPOReward

MODELS = files("cooper_lab") / "arithmetic" / "assets"
SETTINGS = {
    "kind": "cooper_model",
    "reward_model": {"model": str(MODELS / "reward_model"), "learning_rate": 3e-4, "max_input_tokens": 160},
    "cooptimization": {
        "assistant": {"kind": "corrupter", "function": "cooper_lab.arithmetic.corruption:corrupt"},
        "positives": ["rollout", "reference_solution"],
        "loss": {"anchor": 0.5},
    },
}


def main() -> None:
    """A data set has the prompt, and question and reference answer beside it; the rest is TRL's own."""
    problems = arithmetic_problems("train", 64)
    rows = [vars(p) | {"prompt": f"{p.question}\n", "metadata": json.dumps(p.metadata)} for p in problems]
    reward = GRPOReward.from_config(SETTINGS)
    with TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=str(MODELS / "policy"),
            reward_funcs=[reward],
            callbacks=[reward.callback],
            args=GRPOConfig(
                output_dir=folder,
                max_steps=3,
                per_device_train_batch_size=32,
                num_generations=8,
                max_completion_length=32,
                learning_rate=5e-4,
                logging_steps=1,
                report_to=[],
                use_cpu=True,
                bf16=False,
                disable_tqdm=True,
            ),
            train_dataset=Dataset.from_list(rows),
            processing_class=AutoTokenizer.from_pretrained(str(MODELS / "policy")),
        )
        trainer.train()
    for row in trainer.state.log_history[:-1]:
        shown = ("rewards/cooper/mean", "cooper/rule/accuracy", "cooper/pairs/count", "cooper/version")
        print("trl grpo: step", row["step"], {name: round(row[name], 3) for name in shown})


if __name__ == "__main__":
    main()
