"""Temperature scaling: one number that makes sigmoid(logit) a probability, stored in the model's own head.

Guo et al. 2017, On Calibration of Modern Neural Networks (arXiv 1706.04599), section 4.2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from cooper_rl.engines.local.models import load_reward_model
from cooper_rl.errors import InputError
from cooper_rl.evaluation.metrics import expected_calibration_error

COLDEST, HOTTEST = 0.05, 20.0
"""Bounds of the temperature."""
FEWEST_ROWS = 100
"""Fewer held-out rows say little about a probability: the share of right ones among n is known to 1 / sqrt(n)."""


@dataclass(frozen=True)
class Calibration:
    """A temperature fitted on held-out rows, and whether it is worth applying; the errors are expected ones (ECE)."""

    fitted: float
    ece_before: float
    ece_after: float
    """With the temperature, on the rows it was fitted on."""
    ece_cross_fitted: float
    """Each half of the problems under the temperature of the other half: the honest figure. NaN for one problem."""

    @classmethod
    def of(cls, logits: Float[Tensor, " B"], labels: Float[Tensor, " B"], folds: Sequence[int]) -> "Calibration":
        """Fit to all rows, and to each fold for the honest figure."""
        fitted = fit_temperature(logits, labels)
        before, after = (expected_calibration_error((logits.double() / t).sigmoid(), labels) for t in (1.0, fitted))
        return cls(fitted, before, after, cross_fitted_ece(logits, labels, folds))

    @property
    def helps(self) -> bool:
        """Whether the error falls, both on the rows of the fit and on rows it has not seen."""
        return self.ece_after < self.ece_before and self.ece_cross_fitted < self.ece_before

    @property
    def temperature(self) -> float:
        """What the logits are divided by: the fitted temperature where that helps, else 1."""
        return self.fitted if self.helps else 1.0

    def figures(self) -> dict[str, float]:
        """For the record, without figures that are not numbers."""
        found = {
            "temperature": self.temperature,
            "temperature_fitted": self.fitted,
            "ece_before": self.ece_before,
            "ece_cross_fitted": self.ece_cross_fitted,
        }
        return {name: value for name, value in found.items() if not math.isnan(value)}


def fit_temperature(logits: Float[Tensor, " B"], labels: Float[Tensor, " B"]) -> float:
    """The T > 0 that minimises the mean cross-entropy of sigmoid(logit / T), within [0.05, 20].

    The targets are Platt's (1999, section 2.2), (n + 1) / (n + 2) for the n right rows and 1 / (m + 2) for the m wrong
    ones: a few rows that the logits separate perfectly are no evidence of certainty. The loss is convex in 1 / T, so
    the sign of its slope, found by bisection in float64, is enough.
    """
    z, right = logits.double(), labels > 0.5
    n, m = int(right.sum()), int((~right).sum())
    y = torch.where(right, (n + 1) / (n + 2), 1 / (m + 2)).double()
    low, high = 1 / HOTTEST, 1 / COLDEST
    for _ in range(60):
        factor = (low * high) ** 0.5
        slope = (((factor * z).sigmoid() - y) * z).mean()
        low, high = (low, factor) if slope > 0 else (factor, high)
    return 1 / (low * high) ** 0.5


def cross_fitted_ece(logits: Float[Tensor, " B"], labels: Float[Tensor, " B"], folds: Sequence[int]) -> float:
    """Expected calibration error where each fold's temperature was fitted on the other folds' rows.

    `folds[i]` is row i's fold; rows of one problem belong in one fold. NaN with a single fold.
    """
    fold = torch.tensor(folds)
    if len(fold.unique()) < 2:
        return float("nan")
    probabilities = torch.zeros(len(logits), dtype=torch.float64)
    for held in fold.unique():
        temperature = fit_temperature(logits[fold != held], labels[fold != held])
        probabilities[fold == held] = (logits[fold == held].double() / temperature).sigmoid()
    return expected_calibration_error(probabilities, labels)


@torch.no_grad()
def scale_logits(model: PreTrainedModel, factor: float) -> None:
    """Multiply the model's logits by `factor` through the last linear layer of its head.

    Raises InputError for a head without one.
    """
    head = next((getattr(model, name) for name in ("score", "classifier") if hasattr(model, name)), None)
    linear = [module for module in head.modules() if isinstance(module, nn.Linear)] if head is not None else []
    if not linear or linear[-1].out_features != 1:
        raise InputError(
            f"{type(model).__name__}: its head does not end in a linear layer; train with --setting calibrate=false"
        )
    for parameter in linear[-1].parameters():
        parameter.mul_(factor)


def calibrate_folder(folder: Path, temperature: float) -> None:
    """Divide the logits of a saved reward model by `temperature`, in place. Raises as `scale_logits`."""
    model = load_reward_model(str(folder))
    scale_logits(model, 1 / temperature)
    model.save_pretrained(folder)
