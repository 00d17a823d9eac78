"""Metrics of how well logits separate right completions from wrong ones, as pure functions."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

BINS = 15


def roc_auc(logits: Float[Tensor, " B"], labels: Float[Tensor, " B"]) -> float:
    """Probability that a right completion scores above a wrong one; a tie counts half. NaN if there is only one class.

    It is the Mann-Whitney statistic divided by the product of the class sizes (Hanley and McNeil 1982, section 3).
    """
    right = int((labels > 0.5).sum())
    wrong = len(labels) - right
    if right == 0 or wrong == 0:
        return float("nan")
    _, inverse, counts = torch.unique(logits, return_inverse=True, return_counts=True)
    last_rank = counts.cumsum(0).double()
    mean_rank = (last_rank - (counts.double() - 1) / 2)[inverse]  # tied values share the mean of their ranks
    return ((mean_rank[labels > 0.5].sum() - right * (right + 1) / 2) / (right * wrong)).item()


def classification_metrics(logits: Float[Tensor, " B"], labels: Float[Tensor, " B"]) -> dict[str, float]:
    """Quality of the verdict sigmoid(logit) > 1/2 and of the probability itself. Undefined metrics are left out.

    `recall` is the share of right completions that are accepted, `specificity` the share of wrong ones that are
    rejected, `ece` the expected calibration error, and `loss` the mean cross-entropy in nats.
    """
    yes, is_right = logits > 0, labels > 0.5
    found = {
        "accuracy": (yes == is_right).double().mean().item(),
        "precision": is_right[yes].double().mean().item(),
        "recall": yes[is_right].double().mean().item(),
        "specificity": (~yes)[~is_right].double().mean().item(),
        "roc_auc": roc_auc(logits, labels),
        "ece": expected_calibration_error(logits.double().sigmoid(), labels),
        "loss": F.binary_cross_entropy_with_logits(logits.double(), labels.double()).item(),
    }
    return {name: value for name, value in found.items() if name == "loss" or not math.isnan(value)}


@dataclass(frozen=True)
class ReliabilityBin:
    """Completions of similar probability: their mean probability, the share that is right, and their count."""

    probability: float
    right: float
    count: int


def reliability(
    probabilities: Float[Tensor, " B"], labels: Float[Tensor, " B"], bins: int = BINS
) -> list[ReliabilityBin]:
    """Completions in bins of equal width by their probability of being right; empty bins are left out."""
    index = (probabilities * bins).long().clamp(max=bins - 1)
    found = []
    for b in index.unique().tolist():
        inside = index == b
        mean, share = probabilities[inside].double().mean().item(), labels[inside].double().mean().item()
        found.append(ReliabilityBin(mean, share, int(inside.sum())))
    return found


def expected_calibration_error(
    probabilities: Float[Tensor, " B"], labels: Float[Tensor, " B"], bins: int = BINS
) -> float:
    """Mean distance between the probability and the share of right completions over the bins of `reliability`.

    Each bin is weighted by its count (Guo et al. 2017, arXiv 1706.04599, eq. 3, with the probability of being right in
    place of the confidence).
    """
    found = reliability(probabilities, labels, bins)
    return sum(b.count * abs(b.probability - b.right) for b in found) / max(1, len(labels))
