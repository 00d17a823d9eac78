"""The reference for engines: plain transformers in float64, one row at a time."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, PreTrainedModel

from cooper_rl.engines.base import Learner
from cooper_rl.engines.config import LearnerConfig

VOCABULARY = ["<eos>", "<unk>", *"abcdefghijklmnopqrstuvwxyz0123456789 .,?+-*/=<>_"]

Weights = dict[str, Tensor]


def causal(folder: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(folder).double().eval()


def classifier(folder: Path) -> PreTrainedModel:
    return AutoModelForSequenceClassification.from_pretrained(folder).double().eval()


def logprobs(model: PreTrainedModel, row: np.ndarray, completion: int, temperature: float = 1.0) -> Tensor:
    """Log-probabilities of the last `completion` tokens of a row."""
    tokens = torch.from_numpy(row.astype(np.int64))
    logits = model(tokens[None]).logits[0, :-1] / temperature
    return logits.log_softmax(-1).gather(-1, tokens[1:, None])[:, 0][-completion:]


def logits(model: PreTrainedModel, rows: list[list[int]]) -> Tensor:
    return torch.cat([model(torch.tensor([row])).logits[:, 0] for row in rows])


def gradient(model: PreTrainedModel, loss: Tensor) -> Weights:
    named = dict(model.named_parameters())
    return dict(zip(named, torch.autograd.grad(loss, list(named.values())), strict=True))


def weights(learner: Learner, folder: Path) -> Weights:
    """A learner's weights, read from the Hugging Face folder it saves."""
    learner.save(folder)
    has_score = "Classification" in (folder / "config.json").read_text()
    return {name: p.detach() for name, p in (classifier if has_score else causal)(folder).named_parameters()}


def revealing(folder: Path, **changes) -> LearnerConfig:
    """Settings with which AdamW's first step is g / (|g| + 1) for a gradient g, without clipping."""
    settings = {"learning_rate": 1.0, "eps": 1.0, "weight_decay": 0.0, "max_grad_norm": 1e9, "device": "cpu"}
    return LearnerConfig.model_validate({"model": str(folder), **settings, **changes})


def revealed_gradient(learner: Learner, folder: Path) -> Weights:
    """The gradient that a `revealing` learner has accumulated, from its weights before and after its first step."""
    before = weights(learner, folder / "before")
    learner.optim_step()
    after = weights(learner, folder / "after")
    moved = {name: before[name] - after[name] for name in before}
    return {name: step / (1 - step.abs()) for name, step in moved.items()}
