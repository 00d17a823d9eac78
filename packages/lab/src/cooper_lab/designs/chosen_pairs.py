"""Which pairs count, and how much: filters of pairs, and on-policy negatives that several models judge."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import exp, floor
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from cooper_rl import PairFilter, PairFilterConfig
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.reward.pairs.base import PAIRS
from cooper_rl.reward.pairs.sources.on_policy import OnPolicySource, WrongCompletions

if TYPE_CHECKING:
    from cooper_rl import Pair, PairInputs, RewardModel, StepContext

Metrics = dict[str, float]


@PAIRS.register
class AgreedOnPolicyPairs(WrongCompletions):
    """On-policy negatives, without the completions that the learning model and further models all score above 1/2.

    The rule has probably missed a right answer there (arXiv 2505.10597 and 2507.01352, secondary sources). This helps
    against a rule that misses many; a hack that all the models accept is then never taught as wrong.
    """

    kind: Literal["on_policy_agreed"] = "on_policy_agreed"
    agree_with: tuple[ScorerConfig, ...] = Field(min_length=1)
    """The further models, which do not learn, such as a frozen copy of the start."""

    @cached_property
    def _others(self) -> list[RewardModel]:
        from cooper_rl import load_scorer  # noqa: PLC0415 - configuration records do without torch

        return [load_scorer(model) for model in self.agree_with]

    def trusted(self, context: StepContext) -> Sequence[Sequence[bool]]:
        import torch  # noqa: PLC0415 - configuration records do without torch

        others = [model.logits(context.groups) for model in self._others]
        accepted = [logits.flat > 0 for logits in (context.logits, *others)]
        return [list(map(bool, row)) for row in context.ragged(torch.stack(accepted).all(dim=0)).rows()]

    def build(self, inputs: PairInputs) -> OnPolicySource:
        return OnPolicySource(self, inputs.config.pairs_per_problem)


@PAIRS.register
class PeerFilterConfig(PairFilterConfig):
    """Leaves out the share of a step's pairs that another reward model finds hardest: their labels may be wrong.

    It helps against a rule that is often wrong; a hole that both models have is then never closed, since its pairs are
    the hardest.
    """

    metric_names: ClassVar[tuple[str, ...]] = ("pairs/peer_dropped", "pairs/peer_margin")
    kind: Literal["peer"] = "peer"
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


class Weighting(PairFilterConfig):
    """Weights of pairs by the logits from before the update in which a pair is new. Each kind implements `weight`.

    An update scales the weights of its pairs, new and past, to mean 1.
    """

    @abstractmethod
    def weight(self, positive_logit: float, negative_logit: float) -> float:
        """The weight, between 0 and 1."""

    def build(self, inputs: PairInputs) -> WeightingFilter:
        return WeightingFilter(self)


@PAIRS.register
class Misranked(Weighting):
    """1 - sigmoid(positive logit - negative logit): how wrong the order was."""

    kind: Literal["misranked"] = "misranked"

    def weight(self, positive_logit: float, negative_logit: float) -> float:
        return _sigmoid(negative_logit - positive_logit)


@PAIRS.register
class Overpaid(Weighting):
    """sigmoid(negative logit): the reward that the wrong completion got."""

    kind: Literal["overpaid"] = "overpaid"

    def weight(self, positive_logit: float, negative_logit: float) -> float:
        return _sigmoid(negative_logit)


class WeightingFilter(PairFilter):
    """Keeps all pairs. Ties keep their weight."""

    def __init__(self, config: Weighting) -> None:
        self._config = config

    def filter(self, pairs: Sequence[Pair], model: RewardModel) -> tuple[list[Pair], Metrics]:
        from cooper_rl.reward.update import with_logits  # noqa: PLC0415 - configuration records do without torch

        scored = with_logits(pairs, model)
        return [self._weighted(pair) if pair.label == "better" else pair for pair in scored], {}

    def _weighted(self, pair: Pair) -> Pair:
        logits = pair.positive_logit_before or 0.0, pair.negative_logit_before or 0.0
        return replace(pair, weight=pair.weight * self._config.weight(*logits))


def _sigmoid(logit: float) -> float:
    return 1 / (1 + exp(min(700.0, -logit)))
