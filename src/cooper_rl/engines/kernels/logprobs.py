"""Log-probabilities of given tokens without holding all logits of a batch at once."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

LOGITS_PER_CHUNK = 2**24
"""64 MiB in float32: 110 tokens with a vocabulary of 152 k, or a whole batch of a toy model."""


def token_logprobs(
    hidden: Float[Tensor, "N H"],
    head: nn.Linear,
    targets: Int[Tensor, " N"],
    temperature: float = 1.0,
    logits_per_chunk: int = LOGITS_PER_CHUNK,
) -> Float[Tensor, " N"]:
    """log softmax(head(hidden) / temperature)[target] in nats, at least in float32.

    With more than `logits_per_chunk` logits in total, the logits of each chunk are recomputed in the backward pass.
    """
    rows = max(1, logits_per_chunk // head.weight.shape[0])
    if len(hidden) <= rows:
        return _logprobs(hidden, head, targets, temperature)
    chunks = zip(hidden.split(rows), targets.split(rows), strict=True)
    return torch.cat([checkpoint(_logprobs, h, head, t, temperature, use_reentrant=False) for h, t in chunks])  # pyright: ignore[reportArgumentType]


def gather_logprobs(
    logits: Float[Tensor, "N V"], targets: Int[Tensor, " N"], temperature: float = 1.0
) -> Float[Tensor, " N"]:
    """log softmax(logits / temperature)[target] in nats, at least in float32."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if temperature != 1:
        logits = logits / temperature
    return -F.cross_entropy(logits, targets, reduction="none")


def _logprobs(hidden: Tensor, head: nn.Linear, targets: Tensor, temperature: float) -> Tensor:
    return gather_logprobs(head(hidden), targets, temperature)


@torch.no_grad()
def has_plain_head(model: PreTrainedModel) -> bool:
    """Whether the model's logits are just its output embedding applied to its last hidden state.

    Some models scale or cap their logits (Gemma 2, Granite, Cohere). A trial on the model is safer than a list.
    """
    head = model.get_output_embeddings()
    if not isinstance(head, nn.Linear):
        return False
    tokens = torch.arange(min(4, head.weight.shape[0]), device=model.device)[None]
    hidden = model.base_model(tokens, use_cache=False).last_hidden_state
    return torch.allclose(head(hidden), model(tokens, use_cache=False).logits, rtol=1e-4, atol=1e-4)
