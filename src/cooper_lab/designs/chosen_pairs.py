"""Which pairs count, and how much: the peer filter, and weights by how wrong the score was."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, floor
from typing import TYPE_CHECKING, Literal

import torch

from cooper_rl import Pair, encode_pairs

if TYPE_CHECKING:
    from cooper_rl import RewardModel

    Metrics = dict[str, float]

Weighting = Literal["equal", "misranked", "overpaid"]


def without_hardest(pairs: Sequence[Pair], peer: RewardModel, noise: float) -> tuple[list[Pair], Metrics]:
    """The pairs, in their order, without the share `noise` of highest loss -log sigmoid(Delta) under `peer`.

    The number left out is rounded down. Ties are always kept. Peer review in CRM (arXiv 2505.10597; mechanism from a
    secondary source) has two models that learn, each of which picks for the other; here the peer does not learn, and
    the order from easy to hard is left out. `pairs/peer_dropped` is the number left out, `pairs/peer_margin` the mean
    difference of the peer's logits over the pairs before that (NaN without pairs).
    """
    ranked = [i for i, pair in enumerate(pairs) if pair.label == "better"]
    if not ranked:
        return list(pairs), {"pairs/peer_dropped": 0.0, "pairs/peer_margin": float("nan")}
    positives, negatives = encode_pairs([pairs[i] for i in ranked], peer.encoder)
    logits = torch.as_tensor(peer.learner.score(positives + negatives)).double()
    margins = logits[: len(ranked)] - logits[len(ranked) :]
    hardest_first = margins.argsort(stable=True).tolist()  # the loss falls with the margin
    dropped = {ranked[place] for place in hardest_first[: floor(noise * len(ranked))]}
    kept = [pair for i, pair in enumerate(pairs) if i not in dropped]
    return kept, {"pairs/peer_dropped": float(len(dropped)), "pairs/peer_margin": margins.mean().item()}


def pair_weights(pairs: Sequence[Pair], weighting: Weighting) -> list[float]:
    """Weights with mean 1 from the pairs' logits before their update; see `CooptimizationConfig.weighting`.

    A pair that has no such logits weighs as one whose logits are 0. All weights are 1 if the unscaled ones are all 0.
    """
    if weighting == "equal":
        return [1.0] * len(pairs)
    raw = []
    for pair in pairs:
        positive, negative = pair.positive_logit_before or 0.0, pair.negative_logit_before or 0.0
        wrong = negative - positive if weighting == "misranked" else negative
        raw.append(1 / (1 + exp(min(700.0, -wrong))))
    mean = sum(raw) / len(raw) if raw else 0.0
    return [value / mean for value in raw] if mean > 0 else [1.0] * len(raw)
