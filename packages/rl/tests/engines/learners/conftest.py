"""Tiny random models, built from their configs: nothing is downloaded."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import (
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from tiny_llama import in_precision, tiny_config

VOCABULARY = ["<eos>", *"abcdefghijklmnopqrstuvwxyz0123456789 .,?+-*/=<>_"]


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerFast:
    """One token per character. End-of-sequence is id 0, and there is no padding token."""
    characters = Tokenizer(models.WordLevel({c: i for i, c in enumerate(VOCABULARY)}, unk_token="_"))
    characters.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
    return PreTrainedTokenizerFast(tokenizer_object=characters, eos_token="<eos>", unk_token="_")


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
