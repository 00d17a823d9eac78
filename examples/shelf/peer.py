"""Half of CRM's peer review: the pairs that another reward model finds hardest are left out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import floor
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from cooper_rl import PairFilter, PairFilterConfig
from cooper_rl.engines.config import ScorerConfig

if TYPE_CHECKING:
    from cooper_rl import Pair, PairInputs, RewardModel

Metrics = dict[str, float]


class PeerFilterConfig(PairFilterConfig):
    """Leaves out the share of a step's pairs that another reward model finds hardest: their labels may be wrong.

    It helps against a rule that is often wrong; a hole that both models have is then never closed, since its pairs are
    the hardest.
    """

    metric_names: ClassVar[tuple[str, ...]] = ("pairs/peer_dropped", "pairs/peer_margin")
    model: ScorerConfig
    """The other model, which does not learn; best trained from another seed or on other data."""
    noise: float = Field(gt=0, lt=1)
    """Share of a step's pairs to leave out, about the share whose labels are wrong."""

    def build(self, inputs: PairInputs) -> PeerFilter:
        return PeerFilter(self)


class PeerFilter(PairFilter):
    """See `without_hardest`."""

    def __init__(self, config: PeerFilterConfig) -> None:
        self._config = config

    @cached_property
    def _peer(self) -> RewardModel:
        from cooper_rl import load_scorer  # noqa: PLC0415 - configuration records do without torch

        return load_scorer(self._config.model)

    def filter(self, pairs: Sequence[Pair], model: RewardModel) -> tuple[list[Pair], Metrics]:
        return without_hardest(pairs, self._peer, self._config.noise)


def without_hardest(pairs: Sequence[Pair], peer: RewardModel, noise: float) -> tuple[list[Pair], Metrics]:
    """The pairs, in their order, without the share `noise` of highest loss -log sigmoid(Delta) under `peer`.

    The number left out is rounded down. Ties are always kept. Peer review in CRM (arXiv 2505.10597; mechanism from a
    secondary source) has two models that learn, each of which picks for the other; here the peer does not learn, and
    the order from easy to hard is left out. `pairs/peer_dropped` is the number left out, `pairs/peer_margin` the mean
    difference of the peer's logits over the pairs before that (NaN without pairs).
    """
    import torch  # noqa: PLC0415 - configuration records do without torch

    from cooper_rl.reward.update import encode_pairs  # noqa: PLC0415 - configuration records do without torch

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
