"""Losses of the reward model as pure functions of its logits. The weights contain the normalisation."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from jaxtyping import Float
from pydantic import Field

from cooper_rl.config.base import Config, Kinds

if TYPE_CHECKING:
    from torch import Tensor

    Numbers = Float[Tensor, " P"]

PAIR_LOSSES = Kinds("pair loss", "cooper_rl.losses.reward_model", ["pair_loss"], default="pairwise")
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
    margin: float = Field(default=0.0, ge=0)
    """By how much a positive's logit should exceed its negative's; 0 is plain Bradley-Terry."""
    centring: float = Field(default=0.0, ge=0)
    """Weight of the squared sum of a pair's logits. It keeps logits around 0, as the anchor does, but says nothing
    about either completion."""
    smoothing: float = Field(default=0.0, ge=0, le=0.5)
    """Assumed probability that a pair is the wrong way round. Raise it if the rule often misses right answers. At 1/2,
    a pair is taught as a tie."""

    def pair_loss(self, positive_logits: Numbers, negative_logits: Numbers, weights: Numbers) -> RewardLossOutputs:
        """sum_i w_i [ (1 - s) L(d_i) + s L(-d_i) + anchor (BCE(p_i, 1) + BCE(n_i, 0)) / 2 + centring (p_i + n_i)^2 ].

        Here d_i = p_i - n_i - margin, L(d) = -log sigmoid(d) and s = smoothing. Without margin and smoothing, this is
        Bradley-Terry as in Ouyang et al. 2022 (arXiv 2203.02155, eq. 1). Cooper (arXiv 2508.05613) has anchor 0. The
        margin and pairs weighted by their strength are those of HelpSteer2-Preference (arXiv 2410.01257), the centring
        that of Eisenstein et al. 2023 (arXiv 2312.09244), the smoothing that of Secrets of RLHF II (arXiv 2401.06080).
        Metrics: `pair_accuracy` (a tie counts as wrong) and `margin` p_i - n_i.
        """
        from torch.nn.functional import softplus  # noqa: PLC0415 - a configuration is read without torch

        margins = positive_logits - negative_logits
        anchors = (softplus(-positive_logits) + softplus(negative_logits)) / 2
        wanted = margins - self.margin if self.margin else margins
        ordered = softplus(-wanted)
        if self.smoothing:  # not computed at 0, where an infinite logit would turn 0 times its loss into NaN
            ordered = (1 - self.smoothing) * ordered + self.smoothing * softplus(wanted)
        per_pair = ordered + self.anchor * anchors
        if self.centring:
            per_pair = per_pair + self.centring * (positive_logits + negative_logits).square()
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
