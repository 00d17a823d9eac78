"""Losses of the reward model as pure functions of its logits. The weights contain the normalisation."""

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from cooper_rl.config.base import Config


class PairwiseLoss(Config):
    """The positive of each pair should score higher than its negative."""

    kind: Literal["pairwise"] = "pairwise"
    anchor: float = Field(default=0.0, ge=0)
    """Weight of the binary cross-entropy on both completions. Without it, the loss does not change when all logits
    shift together, so sigmoid(logit) drifts and is no longer an absolute reward."""
    margin: float = Field(default=0.0, ge=0)
    """By how much the positive's logit should exceed the negative's before the loss becomes small."""
    centring: float = Field(default=0.0, ge=0)
    """Weight of (positive + negative)^2, which keeps logits around 0 without an opinion on either completion."""
    smoothing: float = Field(default=0.0, ge=0, le=0.5)
    """Probability that a pair is the wrong way round. At 1/2, a pair is taught as a tie."""


class TieLoss(Config):
    """Both completions of each pair should score the same."""

    kind: Literal["tie"] = "tie"


class BinaryCrossEntropyLoss(Config):
    """sigmoid(logit) should equal the label."""

    kind: Literal["binary_cross_entropy"] = "binary_cross_entropy"


RewardLoss = PairwiseLoss | TieLoss | BinaryCrossEntropyLoss


@dataclass(frozen=True)
class RewardLossOutputs:
    """A loss to minimise, and metrics summed over the rows. Divide the sums by the number of rows for means."""

    loss: Float[Tensor, ""]
    metric_sums: dict[str, Float[Tensor, ""]]


def pair_loss(
    loss: PairwiseLoss | TieLoss,
    positive_logits: Float[Tensor, " P"],
    negative_logits: Float[Tensor, " P"],
    weights: Float[Tensor, " P"],
) -> RewardLossOutputs:
    """The loss that a record of settings describes."""
    if isinstance(loss, TieLoss):
        return tie_loss(positive_logits, negative_logits, weights)
    settings = loss.model_dump(exclude={"kind"})
    return pairwise_loss(positive_logits, negative_logits, weights, **settings)


def pairwise_loss(
    positive_logits: Float[Tensor, " P"],
    negative_logits: Float[Tensor, " P"],
    weights: Float[Tensor, " P"],
    anchor: float = 0.0,
    margin: float = 0.0,
    centring: float = 0.0,
    smoothing: float = 0.0,
) -> RewardLossOutputs:
    """sum_i w_i [ (1 - s) L(d_i) + s L(-d_i) + anchor * (BCE(p_i, 1) + BCE(n_i, 0)) / 2 + centring * (p_i + n_i)^2 ].

    Here d_i = p_i - n_i - margin, L(d) = -log sigmoid(d) and s = smoothing. Without margin and smoothing, this is
    Bradley-Terry as in Ouyang et al. 2022 (arXiv 2203.02155, eq. 1). Cooper (arXiv 2508.05613) has anchor 0. The margin
    and pairs weighted by their strength are those of HelpSteer2-Preference (arXiv 2410.01257), the centring that of
    Eisenstein et al. 2023 (arXiv 2312.09244), the smoothing that of Secrets of RLHF II (arXiv 2401.06080).
    Metrics: `pair_accuracy` (a tie counts as wrong) and `margin` p_i - n_i.
    """
    margins = positive_logits - negative_logits
    anchors = (F.softplus(-positive_logits) + F.softplus(negative_logits)) / 2
    wanted = margins - margin if margin else margins
    ordered = F.softplus(-wanted)
    if smoothing:  # not computed at 0, where an infinite logit would turn 0 times its loss into NaN
        ordered = (1 - smoothing) * ordered + smoothing * F.softplus(wanted)
    per_pair = ordered + anchor * anchors
    if centring:
        per_pair = per_pair + centring * (positive_logits + negative_logits).square()
    sums = {"pair_accuracy": (margins > 0).to(margins.dtype).sum(), "margin": margins.sum()}
    return RewardLossOutputs((weights * per_pair).sum(), {name: value.detach() for name, value in sums.items()})


def tie_loss(
    first_logits: Float[Tensor, " P"], second_logits: Float[Tensor, " P"], weights: Float[Tensor, " P"]
) -> RewardLossOutputs:
    """sum_i w_i [ -log sigmoid(d_i) - log sigmoid(-d_i) ] / 2, with d_i the difference of the two logits.

    It is least, log 2, for equal logits (Crome, arXiv 2506.16507; its printed equation has the opposite sign). Metric:
    `gap`, the mean of |d_i|.
    """
    gaps = first_logits - second_logits
    loss = (weights * (F.softplus(-gaps) + F.softplus(gaps)) / 2).sum()
    return RewardLossOutputs(loss, {"gap": gaps.detach().abs().sum()})


def bce_loss(
    logits: Float[Tensor, " B"], labels: Float[Tensor, " B"], weights: Float[Tensor, " B"]
) -> RewardLossOutputs:
    """sum_i w_i BCE(sigmoid(logit_i), label_i), with labels in [0, 1].

    Metrics: `accuracy`, with logit > 0 as the prediction and label > 0.5 as the truth.
    """
    loss = (weights * F.binary_cross_entropy_with_logits(logits, labels, reduction="none")).sum()
    return RewardLossOutputs(loss, {"accuracy": ((logits > 0) == (labels > 0.5)).to(logits.dtype).sum()})
