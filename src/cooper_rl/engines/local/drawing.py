"""Draws one token per row from reproducible uniform numbers, by inverting the cumulative distribution."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cooper_rl.engines.local.filters import filter_logits, has_filters
from cooper_rl.engines.sampling import SamplingParams

CHUNK = 64
BLOCK = 256
"""Number of vocabulary tokens that are summed up together."""


class RowNoise:
    """One stream of uniform numbers per completion, keyed by (seed, prompt index, sample index).

    The randomness of a completion therefore does not depend on the rows beside it, on when they finish, on how rows
    are divided into batches, or on the device. The generator is Philox-4x64 (Salmon et al. 2011).
    """

    def __init__(self, seed: int, keys: Sequence[tuple[int, int]]) -> None:
        self._streams = [
            np.random.Generator(np.random.Philox(key=[seed % 2**64, (prompt << 32) + sample]))
            for prompt, sample in keys
        ]
        self._table = np.empty((len(keys), CHUNK))

    def uniforms(self, step: int, rows: Sequence[int] | Int[np.ndarray, " rows"]) -> np.ndarray:
        """Numbers in [0, 1) for token `step` of `rows`, float64 [len(rows)]. Steps must come in order, from 0."""
        if step % CHUNK == 0:
            for row in rows:
                self._table[row] = self._streams[row].random(CHUNK)
        return self._table[rows, step % CHUNK]


def draw_tokens(
    logits: Float[Tensor, "rows vocab"],
    uniforms: Float[Tensor, " rows"],
    params: SamplingParams,
    forbidden: Int[Tensor, " tokens"] | None = None,
) -> tuple[Int[Tensor, " rows"], Float[Tensor, " rows"]]:
    """Draw one token per row; return token ids and their log-probabilities (nats).

    The log-probabilities are log softmax(logits / temperature), as in a learner, or log softmax(logits) at temperature
    0. The filters and the `forbidden` tokens decide what can be drawn; they do not change the log-probabilities.
    Raises FloatingPointError if the model's logits have no softmax (NaN or infinite).
    """
    logits = logits.float()
    if params.temperature not in (0, 1):
        logits = logits / params.temperature
    peak = logits.amax(dim=-1, keepdim=True)
    weights = (logits - peak).exp_()
    normaliser = weights.sum(dim=-1, keepdim=True).log_() + peak
    if params.temperature and not has_filters(params):
        tokens = _draw_unfiltered(logits, weights, peak, uniforms, forbidden)
    else:
        allowed = _without(forbidden, logits)
        if params.temperature == 0:
            tokens = allowed.argmax(dim=-1, keepdim=True)
        else:
            tokens = invert_cumulative(_weights(filter_logits(allowed, params)), uniforms)
    logprobs = (logits.gather(-1, tokens) - normaliser).squeeze(-1)
    if not bool(torch.isfinite(logprobs).all()):
        raise FloatingPointError("the sampled model's logits are not finite: its weights have probably diverged")
    return tokens.squeeze(-1), logprobs


def _draw_unfiltered(
    logits: Float[Tensor, "rows vocab"],
    weights: Float[Tensor, "rows vocab"],
    peak: Float[Tensor, "rows one"],
    uniforms: Float[Tensor, " rows"],
    forbidden: Int[Tensor, " tokens"] | None,
) -> Int[Tensor, "rows one"]:
    """Draw from exp(logits - peak), which are `weights` and are changed."""
    if forbidden is None:
        return invert_cumulative(weights, uniforms)
    tokens = invert_cumulative(weights.index_fill_(1, forbidden, 0), uniforms)
    # Beside a likely token that is forbidden, the weights of all others may have been rounded to 0.
    led = (logits.index_select(1, forbidden) >= peak).any(dim=-1).nonzero().squeeze(-1)
    if len(led):
        tokens[led] = invert_cumulative(_weights(_without(forbidden, logits[led])), uniforms[led])
    return tokens


def _weights(logits: Float[Tensor, "rows vocab"]) -> Float[Tensor, "rows vocab"]:
    """Weights of the tokens. The most likely one's is 1."""
    return (logits - logits.amax(dim=-1, keepdim=True)).exp_()


def _without(forbidden: Int[Tensor, " tokens"] | None, logits: Float[Tensor, "rows vocab"]) -> Tensor:
    """The logits, and minus infinity for forbidden tokens."""
    return logits if forbidden is None else logits.index_fill(1, forbidden, -torch.inf)


def invert_cumulative(
    weights: Float[Tensor, "rows vocab"], uniforms: Float[Tensor, " rows"]
) -> Int[Tensor, "rows one"]:
    """The first token whose cumulative weight exceeds `uniforms` times the row's total. Its weight is never 0.

    The sums are taken in float64 if the device has it, because a float32 sum over 1e5 tokens would lose the unlikely
    ones. The sums of whole blocks tell which block the token is in, so only one block per row is searched token by
    token.
    """
    dtype = torch.float32 if weights.device.type == "mps" else torch.float64
    # 1 - eps/2 is the largest number below 1. Without it, rounding to float32 could turn a uniform number into 1.
    below_one = 1 - torch.finfo(dtype).eps / 2
    whole = weights.shape[-1] // BLOCK * BLOCK
    sums = weights[:, :whole].unflatten(1, (-1, BLOCK)).sum(dim=-1)
    if whole < weights.shape[-1]:
        sums = torch.cat([sums, weights[:, whole:].sum(dim=-1, keepdim=True)], dim=1)
    sums = sums.to(dtype)
    ends = sums.cumsum(dim=-1)
    targets = uniforms.to(dtype).clamp(max=below_one).unsqueeze(-1) * ends[:, -1:]
    # The clamps only matter for NaN weights, which would otherwise give an index outside the vocabulary.
    block = torch.searchsorted(ends, targets, right=True).clamp(max=ends.shape[-1] - 1)
    start = (ends - sums).gather(1, block)
    tokens = block * BLOCK + torch.arange(BLOCK, device=weights.device)
    inside = weights.gather(1, tokens.clamp(max=weights.shape[-1] - 1)).to(dtype)
    inside = inside.masked_fill(tokens >= weights.shape[-1], 0)
    place = torch.searchsorted(inside.cumsum(dim=-1), targets - start, right=True)
    # The sum of the block may round to just below the target. Then take the last token of the block with any weight.
    last = BLOCK - 1 - (inside.flip(-1) > 0).int().argmax(dim=-1, keepdim=True)
    return (block * BLOCK + torch.minimum(place, last)).clamp(max=weights.shape[-1] - 1)
