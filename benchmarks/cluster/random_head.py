"""A reward model to try machinery with: its scores mean nothing."""

from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer


def write_reward_model(model: str, folder: Path) -> None:
    """Write the model with one output and a head of random weights into a folder, with its tokenizer."""
    torch.manual_seed(0)
    scorer = AutoModelForSequenceClassification.from_pretrained(model, num_labels=1, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(model)
    scorer.config.pad_token_id = tokenizer.pad_token_id
    scorer.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
