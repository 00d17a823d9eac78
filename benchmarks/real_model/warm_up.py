"""Fine-tunes a language model on the warm-up rows with TRL, until it can solve some problems.

python -m benchmarks.real_model.warm_up models/smollm2-135m-instruct data/warm_up.jsonl models/policy-135m
"""

import argparse

from datasets import load_dataset
from transformers import AutoTokenizer
from trl import SFTConfig, SFTTrainer  # pyright: ignore[reportPrivateImportUsage]

from cooper_rl.engines.cpu import bfloat16_pays

PROMPT = "Question: {question}\nAnswer:"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("rows")
    parser.add_argument("out")
    parser.add_argument("--epochs", type=float, default=1.0)
    given = parser.parse_args()
    data = load_dataset("json", data_files=given.rows, split="train")
    data = data.map(lambda row: {"prompt": PROMPT.format(**row)}, remove_columns=["question"])
    settings = SFTConfig(
        output_dir=given.out,
        num_train_epochs=given.epochs,
        per_device_train_batch_size=16,
        learning_rate=1e-4,
        lr_scheduler_type="cosine",
        warmup_steps=5,
        completion_only_loss=True,
        max_length=256,
        use_cpu=True,
        bf16=bfloat16_pays(),
        gradient_checkpointing=False,
        logging_steps=5,
        save_strategy="no",
        report_to=[],
        seed=0,
    )
    trainer = SFTTrainer(
        model=given.model,
        args=settings,
        train_dataset=data,
        processing_class=AutoTokenizer.from_pretrained(given.model),
    )
    trainer.train()
    trainer.save_model(given.out)


if __name__ == "__main__":
    main()
