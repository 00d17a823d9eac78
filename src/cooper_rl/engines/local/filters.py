"""Top-k, top-p and min-p as pure functions from logits to logits: a dropped token gets `-inf`.

`filter_logits` applies them in the order of Hugging Face `generate`: first the temperature, then top-k, top-p and
min-p. Each works on the renormalised output of the previous one. (vLLM applies min-p before top-k and top-p; the
results differ only if several filters are on.)
"""

import torch
from jaxtyping import Float
from torch import Tensor

from cooper_rl.engines.sampling import SamplingParams

NUCLEUS_CANDIDATES = 1024
"""Top-p first looks at this many of the most likely tokens. It sorts the whole vocabulary only if they are too few."""


def keep_top_k(logits: Float[Tensor, "rows vocab"], k: int) -> Float[Tensor, "rows vocab"]:
    """Keep the `k` most likely tokens of each row, and those tied with the last of them (Fan et al. 2018)."""
    if k >= logits.shape[-1]:
        return logits
    threshold = logits.topk(k, dim=-1).values[:, -1:]
    return logits.masked_fill(logits < threshold, -torch.inf)


def keep_top_p(logits: Float[Tensor, "rows vocab"], p: float) -> Float[Tensor, "rows vocab"]:
    """Keep the smallest set of most likely tokens whose probability reaches `p` (Holtzman et al. 2020).

    The most likely token is always kept. Among tied tokens at the border, the set may take either.
    """
    count = min(NUCLEUS_CANDIDATES, logits.shape[-1])
    total = logits.logsumexp(dim=-1, keepdim=True)
    candidates, order = logits.topk(count, dim=-1)
    mass = (candidates - total).exp().cumsum(dim=-1)
    if count < logits.shape[-1] and bool((mass[:, -1] < p).any()):
        candidates, order = logits.sort(dim=-1, descending=True)
        mass = (candidates - total).exp().cumsum(dim=-1)
    # A token stays while the mass before it has not reached p.
    inside = torch.ones_like(mass, dtype=torch.bool)
    inside[:, 1:] = mass[:, :-1] < p
    kept = torch.full_like(logits, -torch.inf)
    return kept.scatter_(-1, order, candidates.masked_fill(~inside, -torch.inf))


def keep_min_p(logits: Float[Tensor, "rows vocab"], min_p: float) -> Float[Tensor, "rows vocab"]:
    """Keep the tokens at least `min_p` times as likely as the most likely one (Nguyen et al. 2024)."""
    if min_p == 0:
        return logits
    threshold = logits.amax(dim=-1, keepdim=True) + torch.tensor(min_p).log().item()
    return logits.masked_fill(logits < threshold, -torch.inf)


def has_filters(params: SamplingParams) -> bool:
    """Whether `filter_logits` does anything."""
    return params.top_k > 0 or params.top_p < 1 or params.min_p > 0


def filter_logits(logits: Float[Tensor, "rows vocab"], params: SamplingParams) -> Float[Tensor, "rows vocab"]:
    """Apply the filters of `params` to logits that are already divided by the temperature.

    Returns the input tensor itself if no filter is on.
    """
    if params.top_k > 0:
        logits = keep_top_k(logits, params.top_k)
    if params.top_p < 1:
        logits = keep_top_p(logits, params.top_p)
    if params.min_p > 0:
        logits = keep_min_p(logits, params.min_p)
    return logits
