"""Tiny random models, built from their configs: nothing is downloaded."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from tiny_size import TINY

VOCABULARY = ["<eos>", *"abcdefghijklmnopqrstuvwxyz0123456789 .,?+-*/=<>_"]


def tiny_config(**changes) -> LlamaConfig:
    settings = {
        **TINY,
        "max_position_embeddings": 128,
        "bos_token_id": None,
        "eos_token_id": 0,
        "initializer_range": 0.2,
    }
    return LlamaConfig(**(settings | changes))


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerFast:
    """One token per character. End-of-sequence is id 0, and there is no padding token."""
    characters = Tokenizer(models.WordLevel({c: i for i, c in enumerate(VOCABULARY)}, unk_token="_"))
    characters.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
    return PreTrainedTokenizerFast(tokenizer_object=characters, eos_token="<eos>", unk_token="_")


def in_precision(model: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """The model with every computation in `dtype`; Llama's own norms would compute in float32."""
    if dtype == torch.float64:
        for parent in list(model.modules()):
            for name, module in list(parent.named_children()):
                if isinstance(module, LlamaRMSNorm):
                    setattr(parent, name, torch.nn.RMSNorm(module.weight.shape, eps=module.variance_epsilon))
    return model.to(dtype).eval()  # pyright: ignore[reportArgumentType]


@pytest.fixture
def make_policy() -> Callable[..., PreTrainedModel]:
    def make(dtype: torch.dtype = torch.float32, seed: int = 0, **changes) -> PreTrainedModel:
        torch.manual_seed(seed)
        model: PreTrainedModel = LlamaForCausalLM(tiny_config(**changes))
        return in_precision(model, dtype)

    return make


@pytest.fixture
def make_reward_model() -> Callable[..., PreTrainedModel]:
    def make(dtype: torch.dtype = torch.float32, seed: int = 0, **changes) -> PreTrainedModel:
        torch.manual_seed(seed)
        config = tiny_config(**({"num_labels": 1, "pad_token_id": 0} | changes))
        model: PreTrainedModel = LlamaForSequenceClassification(config)
        return in_precision(model, dtype)

    return make


@pytest.fixture
def policy_folder(tmp_path: Path, make_policy, tokenizer) -> Path:
    folder = tmp_path / "policy"
    make_policy().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def reward_model_folder(tmp_path: Path, make_reward_model, tokenizer) -> Path:
    folder = tmp_path / "reward_model"
    make_reward_model().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
