"""Scores groups of completions with a reward model. Engines: cooper, padded.

`padded` is a plain loop over batches of eight in the order given, padded to the longest, with an attention mask.
"""

import random

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.reward_input import RewardModelInput
from measure import Meter, report
from workload import arguments, model_folder, prompts


def inputs(options, tokenizer) -> list[list[int]]:
    """Sixteen problems with eight completions of very unequal lengths."""
    chance = random.Random(options.seed)
    encoder = RewardModelInput(tokenizer, 512)
    words = "7 + 5 = 12, so 12 of them are left and 3 more come. "
    return [
        encoder.encode(text, "12", words * min(8, 1 + int(chance.expovariate(0.5))))
        for text in prompts(16, options.model, options.seed)
        for _ in range(8)
    ]


def cooper(options) -> None:
    folder = model_folder(options.model, "reward_model")
    learner = TorchRewardModelLearner.from_config(LearnerConfig(model=folder, device="cpu"), 0, False, new_head_seed=0)
    rows = inputs(options, learner.tokenizer)
    learner.score(rows[:8])
    meter = Meter()
    with meter.measure():
        scores = learner.score(rows)
    report(meter, len(rows), checksum=scores.double().sum().item())


def padded(options) -> None:
    folder = model_folder(options.model, "reward_model")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1, dtype=torch.float32).eval()
    model.config.pad_token_id = tokenizer.pad_token_id
    rows = inputs(options, tokenizer)
    meter, total = Meter(), 0.0
    with torch.inference_mode():
        model(torch.tensor(rows[:1]))
        with meter.measure():
            for start in range(0, len(rows), 8):
                batch = tokenizer.pad({"input_ids": rows[start : start + 8]}, return_tensors="pt", padding_side="right")
                total += model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits.double().sum().item()
    report(meter, len(rows), checksum=total)


if __name__ == "__main__":
    given = arguments(__doc__, "cooper", "padded").parse_args()
    torch.set_num_threads(given.threads)
    {"cooper": cooper, "padded": padded}[given.engine](given)
