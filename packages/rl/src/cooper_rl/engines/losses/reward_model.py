"""Losses of the reward model as pure functions of its logits. The weights contain the normalisation."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from jaxtyping import Float
from pydantic import Field

from cooper_base.config.base import Config, Kinds

if TYPE_CHECKING:
    from torch import Tensor

    Numbers = Float[Tensor, " P"]

PAIR_LOSSES = Kinds("pair loss", "cooper_rl.engines.losses.reward_model", ["pair_loss"], default="pairwise")
"""The kinds of `cooptimization.loss`."""


@dataclass(frozen=True)
class RewardLossOutputs:
    """A loss to minimise, and metrics summed over the rows. Divide the sums by the number of rows for means."""

    loss: Float[Tensor, ""]
    metric_sums: dict[str, Float[Tensor, ""]]


class PairLoss(Config):
    """The base of all losses of pairs. Each kind implements `pair_loss`."""

    @abstractmethod
    def pair_loss(self, positive_logits: Numbers, negative_logits: Numbers, weights: Numbers) -> RewardLossOutputs:
        """The weighted sum over the P pairs, and metrics by name."""


PairLossConfig = Annotated[PairLoss, PAIR_LOSSES]


@PAIR_LOSSES.register
class PairwiseLoss(PairLoss):
    """The positive of each pair should score higher than its negative."""

    kind: Literal["pairwise"] = "pairwise"
    anchor: float = Field(default=0.5, ge=0)
    """Weight of a binary cross-entropy on both completions, which keeps sigmoid(logit) an absolute reward. Without it,
    the loss does not change when all logits shift together."""

    def pair_loss(self, positive_logits: Numbers, negative_logits: Numbers, weights: Numbers) -> RewardLossOutputs:
        """sum_i w_i [ -log sigmoid(p_i - n_i) + anchor (BCE(p_i, 1) + BCE(n_i, 0)) / 2 ].

        Without the anchor, as in Cooper (arXiv 2508.05613), this is Bradley-Terry (Ouyang et al. 2022, arXiv
        2203.02155, eq. 1). Metrics: `pair_accuracy` (a tie counts as wrong) and `margin` p_i - n_i.
        """
        from torch.nn.functional import softplus  # noqa: PLC0415 - a configuration is read without torch

        margins = positive_logits - negative_logits
        anchors = (softplus(-positive_logits) + softplus(negative_logits)) / 2
        per_pair = softplus(-margins) + self.anchor * anchors
        sums = {"pair_accuracy": (margins > 0).to(margins.dtype).sum(), "margin": margins.detach().sum()}
        return RewardLossOutputs((weights * per_pair).sum(), sums)


class TieLoss(PairLoss):
    """Both completions of a pair should score the same. It is the loss of the pairs whose label is `tie`."""

    def pair_loss(self, positive_logits: Numbers, negative_logits: Numbers, weights: Numbers) -> RewardLossOutputs:
        """sum_i w_i [ -log sigmoid(d_i) - log sigmoid(-d_i) ] / 2, with d_i the difference of the two logits.

        It is least, log 2, for equal logits (Crome, arXiv 2506.16507; its printed equation has the opposite sign).
        Metric: `gap`, the mean of |d_i|.
        """
        from torch.nn.functional import softplus  # noqa: PLC0415 - as above

        gaps = positive_logits - negative_logits
        loss = (weights * (softplus(-gaps) + softplus(gaps)) / 2).sum()
        return RewardLossOutputs(loss, {"gap": gaps.detach().abs().sum()})


class BinaryCrossEntropyLoss(Config):
    """sigmoid(logit) should equal the label; see `bce_loss`."""


RewardLoss = PairLoss | BinaryCrossEntropyLoss


def bce_loss(logits: Numbers, labels: Numbers, weights: Numbers) -> RewardLossOutputs:
    """sum_i w_i BCE(sigmoid(logit_i), label_i) of P rows, with labels in [0, 1].

    Metrics: `accuracy`, with logit > 0 as the prediction and label > 0.5 as the truth.
    """
    from torch.nn.functional import binary_cross_entropy_with_logits  # noqa: PLC0415 - as above

    loss = (weights * binary_cross_entropy_with_logits(logits, labels, reduction="none")).sum()
    return RewardLossOutputs(loss, {"accuracy": ((logits > 0) == (labels > 0.5)).to(logits.dtype).sum()})
