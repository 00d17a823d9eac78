"""What the suite compares engines with: plain transformers (and peft) in float64, one row at a time."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peft import PeftConfig, PeftModel
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from cooper_rl.engines.base import Learner
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.model_folder import recorded

ON: dict[str, Any] = {
    "device": os.environ.get("COOPER_TEST_DEVICE", "cpu"),
    "autocast": "off",
    "attention": "sdpa",  # the other kernels have tests of their own
}
"""Where learners compute, and how: as exactly as the device can. See the part `conformance` of `make gpu-check`."""
VOCABULARY = ["<eos>", "<unk>", *"abcdefghijklmnopqrstuvwxyz0123456789 .,?+-*/=<>_"]

Weights = dict[str, Tensor]


def causal(folder: Path) -> Any:
    return _load(AutoModelForCausalLM, folder)


def classifier(folder: Path) -> Any:
    return _load(AutoModelForSequenceClassification, folder)


def scorer(folder: Path) -> Any:
    """A classifier, or the language model of a folder that was saved as one that is asked."""
    return causal(folder) if recorded(str(folder)) else classifier(folder)


def _load(kind: Any, folder: Path) -> Any:
    if not (folder / "adapter_config.json").exists():
        return kind.from_pretrained(folder).double().eval()
    base = kind.from_pretrained(PeftConfig.from_pretrained(str(folder)).base_model_name_or_path)
    return PeftModel.from_pretrained(base, folder, is_trainable=True).double().eval()


def trained(model: nn.Module) -> Weights:
    """What is learned: all weights, or an adapter with its head."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def logprobs(model: nn.Module, row: np.ndarray, completion: int, temperature: float = 1.0) -> Tensor:
    """Of the last `completion` tokens of a row."""
    tokens = torch.from_numpy(row.astype(np.int64))
    logits = model(tokens[None]).logits[0, :-1] / temperature
    return logits.log_softmax(-1).gather(-1, tokens[1:, None])[:, 0][-completion:]


def logits(model: nn.Module, rows: list[list[int]]) -> Tensor:
    """Of a language model, yes minus no of the token after each row."""
    found = [model(torch.tensor([row])).logits[0] for row in rows]
    if (asked := getattr(model.config, "yes_no", None)) is None:
        return torch.cat(found)
    return torch.stack([(row[-1, asked["yes"]] - row[-1, asked["no"]]) / asked["temperature"] for row in found])


def gradient(model: nn.Module, loss: Tensor) -> Weights:
    named = trained(model)
    return dict(zip(named, torch.autograd.grad(loss, list(named.values())), strict=True))


def weights(learner: Learner, folder: Path) -> Weights:
    """A learner's weights, read from the Hugging Face folder it saves."""
    learner.save(folder)
    written = "".join(path.read_text() for path in folder.glob("*config.json"))
    has_score = "SequenceClassification" in written or "SEQ_CLS" in written
    return {name: p.detach() for name, p in trained((classifier if has_score else causal)(folder)).items()}


ADAMW_EPS = 1e-8
"""AdamW's guard against division by zero."""


def revealing(folder: Path, **changes) -> LearnerConfig:
    """Settings with which AdamW's first step is u / (|u| + 1), where u is the gradient divided by its norm.

    The gradient is clipped to AdamW's eps, beside which AdamW does not take its size away.
    """
    settings = {"learning_rate": 1.0, "weight_decay": 0.0, "max_grad_norm": ADAMW_EPS, **ON}
    return LearnerConfig.model_validate({"model": str(folder), **settings, **changes})


def revealed_gradient(learner: Learner, folder: Path) -> Weights:
    """The gradient that a `revealing` learner has accumulated, from its weights before and after its first step."""
    before = weights(learner, folder / "before")
    norm = learner.optim_step()["grad_norm"] + 1e-6  # PyTorch divides by this sum where it clips
    after = weights(learner, folder / "after")
    moved = {name: before[name] - after[name] for name in before}
    return {name: norm * step / (1 - step.abs()) for name, step in moved.items()}
