"""Log-probabilities of tokens from a model's hidden states or logits, in chunks."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from cooper_rl.engines.base import Lengths
from cooper_rl.engines.local.numerics import largest_chunk


def check_prompts(totals: Lengths, lengths: Lengths) -> None:
    """Raises ValueError if a completion fills its row, because then nothing predicts its first token."""
    if (lengths >= totals).any():
        raise ValueError("a completion needs at least one prompt token before it")


def token_logprobs(
    hidden: Float[Tensor, "N H"],
    head: nn.Linear,
    targets: Int[Tensor, " N"],
    temperature: float = 1.0,
    logits_per_chunk: int | None = None,
) -> Float[Tensor, " N"]:
    """log softmax(head(hidden) / temperature)[target] in nats, at least in float32.

    If there are more than `logits_per_chunk` logits in total (None: `largest_chunk` of the device), they are computed
    in chunks. All chunks but the last are recomputed in the backward pass, which begins with the last, so the memory
    for one chunk is enough.
    """

    def logprobs(hidden: Tensor, targets: Tensor) -> Tensor:
        return gather_logprobs(head(hidden), targets, temperature)

    rows = max(1, (logits_per_chunk or largest_chunk(hidden.device)) // head.weight.shape[0])
    if len(hidden) <= rows:
        return logprobs(hidden, targets)
    count = -(-len(hidden) // rows)
    *chunks, last = zip(hidden.tensor_split(count), targets.tensor_split(count), strict=True)
    recomputed: list[Any] = [checkpoint(logprobs, *chunk, use_reentrant=False) for chunk in chunks]
    return torch.cat([*recomputed, logprobs(*last)])


def gather_logprobs(logits: Float[Tensor, "N V"], targets: Int[Tensor, " N"], temperature: float = 1.0) -> Tensor:
    """log softmax(logits / temperature)[target] in nats, at least in float32, [N]."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if temperature != 1:
        logits = logits / temperature
    return -F.cross_entropy(logits, targets, reduction="none")
