"""Temperature scaling (Guo et al. 2017, arXiv 1706.04599, section 4.2), stored in the reward model's own head."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from cooper_base.data.strict_json import parse_json
from cooper_base.errors import InputError
from cooper_base.files.durable import write_text
from cooper_rl.engines.local.models import disk_errors, load_reward_model
from cooper_rl.engines.model_folder import YES_NO, recorded
from cooper_rl.reward.monitor import expected_calibration_error

COLDEST, HOTTEST = 0.05, 20.0
"""Bounds of the temperature."""
FEWEST_ROWS = 100
"""Fewer held-out rows say little about a probability, because a share among n rows is known only to 1 / sqrt(n)."""


@dataclass(frozen=True)
class Calibration:
    """A temperature fitted on held-out rows, and the expected calibration errors (ECE) that say whether it helps."""

    fitted: float
    ece_before: float
    ece_after: float
    """ECE with the temperature, on the rows it was fitted on."""
    ece_cross_fitted: float
    """ECE of each half of the problems with the temperature of the other: the honest value. NaN for one problem."""

    @classmethod
    def of(cls, logits: Float[Tensor, " B"], labels: Float[Tensor, " B"], folds: Sequence[int]) -> "Calibration":
        fitted = fit_temperature(logits, labels)
        before, after = (expected_calibration_error((logits.double() / t).sigmoid(), labels) for t in (1.0, fitted))
        return cls(fitted, before, after, cross_fitted_ece(logits, labels, folds))

    @property
    def helps(self) -> bool:
        """Whether the error falls, both on the rows of the fit and on rows that the fit has not seen."""
        return self.ece_after < self.ece_before and self.ece_cross_fitted < self.ece_before

    @property
    def temperature(self) -> float:
        """The number by which the logits are divided: the fitted temperature if it helps, otherwise 1."""
        return self.fitted if self.helps else 1.0

    def figures(self) -> dict[str, float]:
        """The values for the record, without those that are NaN."""
        found = {"temperature": self.temperature, "temperature_fitted": self.fitted}
        found |= {"ece_before": self.ece_before, "ece_cross_fitted": self.ece_cross_fitted}
        return {name: value for name, value in found.items() if not math.isnan(value)}


def fit_temperature(logits: Float[Tensor, " B"], labels: Float[Tensor, " B"]) -> float:
    """The T in [0.05, 20] that minimises the mean cross-entropy of sigmoid(logit / T).

    The targets are Platt's (1999, section 2.2): (n + 1) / (n + 2) for the n right rows and 1 / (m + 2) for the m wrong
    ones, so that a few perfectly separated rows are no certainty. The loss is convex in 1 / T: bisection, in float64.
    """
    z, right = logits.double(), labels > 0.5
    n, m = int(right.sum()), int((~right).sum())
    y = torch.where(right, (n + 1) / (n + 2), 1 / (m + 2)).double()
    low, high = 1 / HOTTEST, 1 / COLDEST
    for _ in range(60):  # halvings of a factor of 400: beyond what float64 tells apart
        factor = (low * high) ** 0.5
        slope = (((factor * z).sigmoid() - y) * z).mean()
        low, high = (low, factor) if slope > 0 else (factor, high)
    return 1 / (low * high) ** 0.5


def cross_fitted_ece(logits: Float[Tensor, " B"], labels: Float[Tensor, " B"], folds: Sequence[int]) -> float:
    """ECE if the temperature of each fold is fitted on the others. `folds[i]` is that of row i. NaN for one fold."""
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
    """Multiply the model's logits by `factor`, in the last linear layer of its head. Raises InputError without one."""
    head = next((getattr(model, name) for name in ("score", "classifier") if hasattr(model, name)), None)
    linear = [module for module in head.modules() if isinstance(module, nn.Linear)] if head is not None else []
    if not linear or linear[-1].out_features != 1:
        raise InputError(f"{type(model).__name__}: the head does not end in a linear layer; train with calibrate=false")
    for parameter in linear[-1].parameters():
        parameter.mul_(factor)


def calibrate_folder(folder: Path, temperature: float) -> None:
    """Divide the logits of a saved reward model by `temperature`, in place. Raises InputError like `scale_logits`."""
    if asked := recorded(str(folder)):  # the weights are those of a language model, so its record has the temperature
        file = folder / "config.json"
        scaled = asked.model_copy(update={"temperature": asked.temperature * temperature})
        values = parse_json(file.read_text(encoding="utf-8")) | {YES_NO: scaled.model_dump()}
        write_text(file, json.dumps(values, indent=2) + "\n")
        return
    model = load_reward_model(str(folder))
    scale_logits(model, 1 / temperature)
    with disk_errors(folder):
        model.save_pretrained(folder)
