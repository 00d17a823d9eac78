"""Leaves out the pairs that another reward model finds hardest, since their labels may be wrong."""

from collections.abc import Sequence
from math import floor

import torch

from cooper_rl.engines.base import Metrics
from cooper_rl.rewards.context import RewardModel
from cooper_rl.stage2.pairs import Pair
from cooper_rl.stage2.update import encode_pairs


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
