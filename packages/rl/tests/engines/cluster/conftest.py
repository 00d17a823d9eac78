"""A tiny policy, and engines of one, two and four processes."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from sharded import UNEVEN
from transformers import LlamaForCausalLM

from cooper_lab.arithmetic.tokenizer import build_tokenizer
from cooper_rl.engines.local import LocalEngine
from cooper_rl.engines.scale.ray import ClusterEngine
from rank_processes import two_ranks
from tiny_llama import tiny_config


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A policy whose head is its embedding."""
    folder = tmp_path_factory.mktemp("tied")
    torch.manual_seed(0)
    tokenizer = build_tokenizer()
    size = len(tokenizer) if len(tokenizer) % 2 else len(tokenizer) + 1
    assert size >= UNEVEN
    LlamaForCausalLM(tiny_config(vocab_size=size, tie_word_embeddings=True)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def engines(tmp_path_factory) -> Iterator[Callable[[int], Any]]:
    """An engine by its number of processes."""
    four = ClusterEngine(policy_ranks=4, cpus_per_rank=0.1)

    @cache
    def four_ranks() -> ClusterEngine:
        two_ranks()  # Ray itself
        four.open(tmp_path_factory.mktemp("four"))
        return four

    def engine_of(ranks: int) -> Any:
        return {1: LocalEngine, 2: two_ranks, 4: four_ranks}[ranks]()

    yield engine_of
    four.close()
