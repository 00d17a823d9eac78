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
    """Names this loss."""
    anchor: float = Field(default=0.0, ge=0)
    """Weight of the binary cross-entropy on both completions. Without it, the loss does not change when all logits
    shift together, so sigmoid(logit) drifts and is no longer an absolute reward."""


class BinaryCrossEntropyLoss(Config):
    """sigmoid(logit) should equal the label."""

    kind: Literal["binary_cross_entropy"] = "binary_cross_entropy"
    """Names this loss."""


@dataclass(frozen=True)
class RewardLossOutputs:
    """A loss to minimise, and metrics summed over the rows. Divide the sums by the number of rows for means."""

    loss: Float[Tensor, ""]
    metric_sums: dict[str, Float[Tensor, ""]]


def pairwise_loss(
    positive_logits: Float[Tensor, " P"],
    negative_logits: Float[Tensor, " P"],
    weights: Float[Tensor, " P"],
    anchor: float = 0.0,
) -> RewardLossOutputs:
    """sum_i w_i [ -log sigmoid(p_i - n_i) + anchor * (BCE(p_i, 1) + BCE(n_i, 0)) / 2 ].

    This is Bradley-Terry as in Ouyang et al. 2022 (arXiv 2203.02155, eq. 1). Cooper (arXiv 2508.05613) has anchor 0.
    Metrics: `pair_accuracy` (a tie counts as wrong) and `margin` p_i - n_i.
    """
    margins = positive_logits - negative_logits
    anchors = (F.softplus(-positive_logits) + F.softplus(negative_logits)) / 2
    loss = (weights * (F.softplus(-margins) + anchor * anchors)).sum()
    sums = {"pair_accuracy": (margins > 0).to(margins.dtype).sum(), "margin": margins.sum()}
    return RewardLossOutputs(loss, {name: value.detach() for name, value in sums.items()})


def bce_loss(
    logits: Float[Tensor, " B"], labels: Float[Tensor, " B"], weights: Float[Tensor, " B"]
) -> RewardLossOutputs:
    """sum_i w_i BCE(sigmoid(logit_i), label_i), with labels in [0, 1].

    Metrics: `accuracy`, with logit > 0 as the prediction and label > 0.5 as the truth.
    """
    loss = (weights * F.binary_cross_entropy_with_logits(logits, labels, reduction="none")).sum()
    return RewardLossOutputs(loss, {"accuracy": ((logits > 0) == (labels > 0.5)).to(logits.dtype).sum()})
