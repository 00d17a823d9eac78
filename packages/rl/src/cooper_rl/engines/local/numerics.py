"""What depends on the device: the precision of products and of frozen weights, and the size of chunks."""

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from torch import nn

from cooper_rl.engines.config import Autocast
from cooper_rl.engines.cpu import bfloat16_pays

logger = logging.getLogger(__name__)


def in_bfloat16(autocast: Autocast, device: torch.device) -> bool:
    """Whether matrix products on the device are in bfloat16.

    `auto` is bfloat16 only on a GPU that has it in hardware, because float32 is faster elsewhere. Warns once if the
    settings demand bfloat16 on a CPU that computes it more slowly.
    """
    if autocast == "auto":
        return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    if autocast == "bfloat16" and device.type == "cpu" and not bfloat16_pays():
        _warn_of_slow_bfloat16()
    return autocast == "bfloat16"


@cache
def _warn_of_slow_bfloat16() -> None:
    logger.warning("autocast: this processor multiplies in bfloat16 more slowly than in float32; set autocast: off")


def allow_tf32(device: torch.device) -> None:
    """On a GPU, compute float32 products in TF32 from now on: 10 bits of mantissa, eight times the speed on an A100.

    The older of PyTorch's two switches sets both, leaves the CPU alone, and works beside libraries that read either.
    Reading it fails where a library has set the newer one alone.
    """
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = True


@contextmanager
def exact_float32() -> Iterator[None]:
    """Float32 products without TF32 meanwhile, for comparisons."""
    products = torch.backends.cuda.matmul
    before = products.fp32_precision
    products.allow_tf32 = False
    try:
        yield
    finally:
        if before == "tf32":
            products.allow_tf32 = True
        else:
            products.fp32_precision = before


def halve_frozen(model: nn.Module, keep: nn.Module | None = None) -> None:
    """Hold the weights of linear layers that are not trained in bfloat16, for a model that computes under autocast.

    Autocast rounds them to that in every pass, so no result changes by a bit. Embeddings and norms stay float32, as
    does a head that shares the embeddings' weight, and the layer to `keep`: they are read without rounding.
    """
    uses = Counter(id(parameter) for _, parameter in model.named_parameters(remove_duplicate=False))
    for module in model.modules():
        halves = isinstance(module, nn.Linear) and module is not keep
        own = list(module.parameters(recurse=False)) if halves else []
        if own and all(p.dtype == torch.float32 and not p.requires_grad and uses[id(p)] == 1 for p in own):
            module.to(torch.bfloat16)


def largest_chunk(device: torch.device) -> int:
    """How many logits are held at a time to compute log-probabilities.

    On a CPU they take 64 MiB in float32: 110 tokens with a vocabulary of 152 k, or a whole batch of a toy model. A GPU
    needs about a thousand tokens to be busy: 2^27 logits are 883 tokens with this vocabulary, and take 0.5 GiB each for
    the logits in float32, their softmax and its gradient. (SkyRL measured 1,024 tokens a chunk as the best balance of
    speed and memory.)
    """
    return 2**27 if device.type == "cuda" else 2**24
