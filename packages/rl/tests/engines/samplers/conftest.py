"""A character tokenizer and tiny random models, made here so that the tests need no download."""

from collections.abc import Callable

import pytest
import torch
from tokenizers import Tokenizer, decoders, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from cooper_rl.engines.cpu.decoder import GroupedCache
from tiny_size import TINY

CHARACTERS = "0123456789+-*/=() abcdefghijklmnopqrstuvwxyz.,?!\n"
SIZE = {
    **TINY,
    "max_position_embeddings": 96,
    "initializer_range": 0.2,
    "eos_token_id": 1,
    "pad_token_id": 0,
}


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    """Ids 0 and 1 are padding and end of sequence; after them comes one token per character."""
    vocabulary = {"<pad>": 0, "<eos>": 1, **{character: index + 2 for index, character in enumerate(CHARACTERS)}}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    backend.decoder = decoders.Fuse()  # pyright: ignore[reportAttributeAccessIssue]
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<eos>", pad_token="<pad>")


@pytest.fixture(params=["llama", "qwen2"])
def model(request):
    """A random model, in training mode like a learner's."""
    torch.manual_seed(0)
    if request.param == "llama":
        return LlamaForCausalLM(LlamaConfig(**SIZE)).train()
    return Qwen2ForCausalLM(Qwen2Config(**SIZE)).train()


@pytest.fixture
def held_bytes() -> Callable[[GroupedCache], int]:
    """Bytes of memory that the keys and values of a cache hold."""

    def held(cache: GroupedCache) -> int:
        pairs = [*cache._prompts, *((layer.keys, layer.values) for layer in cache._own)]
        tensors = [x.untyped_storage() for pair in pairs for x in pair if x is not None]
        return sum({x.data_ptr(): x.nbytes() for x in tensors}.values())

    return held


@pytest.fixture
def llama():
    """A random Llama."""
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(**SIZE))
