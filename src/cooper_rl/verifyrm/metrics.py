"""How well logits separate right completions from wrong ones, as pure functions."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def roc_auc(logits: Float[Tensor, " B"], labels: Float[Tensor, " B"]) -> float:
    """Probability that a right completion scores above a wrong one, a tie counting half; NaN with one class only.

    The Mann-Whitney statistic over the product of the class sizes (Hanley and McNeil 1982, section 3).
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
    """Accuracy of the verdict sigmoid(logit) > 1/2, on all rows and in each class, ROC-AUC and mean cross-entropy."""
    said_right = (logits > 0).double()
    is_right = labels > 0.5
    return {
        "accuracy": (said_right == is_right.double()).double().mean().item(),
        "recall_right": said_right[is_right].mean().item(),
        "recall_wrong": (1 - said_right[~is_right]).mean().item(),
        "roc_auc": roc_auc(logits, labels),
        "loss": F.binary_cross_entropy_with_logits(logits.double(), labels.double()).item(),
    }
