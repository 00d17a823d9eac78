"""Measures a reward model: metrics of its logits on labelled completions, and the monitor that records them during a
run."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from cooper_audit.attack.wrong_answers import ATTACKS, CONTROLS, attack_rows
from cooper_base.data.labelled import LabelledCompletion
from cooper_rl.engines.base import Metrics
from cooper_rl.engines.reward_input import encode_rows
from cooper_rl.reward.context import RewardModel
from cooper_rl.reward.monitor_config import MonitorConfig

BINS = 15
"""As in Guo et al. 2017, so that calibration errors compare with published ones."""


def roc_auc(logits: Float[Tensor, " B"], labels: Float[Tensor, " B"]) -> float:
    """Probability that a right completion scores above a wrong one; a tie counts half. NaN with only one class.

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
    rejected, and `loss` the mean cross-entropy in nats.
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
    """Completions of similar probability: their mean probability, the share that is right, and their number."""

    probability: float
    right: float
    count: int


def reliability(
    probabilities: Float[Tensor, " B"], labels: Float[Tensor, " B"], bins: int = BINS
) -> list[ReliabilityBin]:
    """Completions in bins of equal width by their probability of being right; empty bins are left out."""
    index = (probabilities * bins).long().clamp(max=bins - 1)
    found = []
    for inside in (index == b for b in index.unique()):
        mean, share = probabilities[inside].double().mean().item(), labels[inside].double().mean().item()
        found.append(ReliabilityBin(mean, share, int(inside.sum())))
    return found


def expected_calibration_error(
    probabilities: Float[Tensor, " B"], labels: Float[Tensor, " B"], bins: int = BINS
) -> float:
    """Mean distance between the probability and the share of right completions over the bins of `reliability`.

    Each bin is weighted by its count (Guo et al. 2017, arXiv 1706.04599, eq. 3, of the probability of being right).
    """
    found = reliability(probabilities, labels, bins)
    return sum(b.count * abs(b.probability - b.right) for b in found) / max(1, len(labels))


class Monitor:
    """Labelled completions, drawn from `rows`, and attacks, on which a reward model is measured but never learns."""

    def __init__(
        self, config: MonitorConfig, rows: Sequence[LabelledCompletion], model: RewardModel, seed: int
    ) -> None:
        self.every = config.every
        self._learner = model.learner
        drawn = Random(f"monitor {seed}").sample(rows, min(config.rows, len(rows)))
        self._held_out = encode_rows(model.encoder, drawn)
        self._attacks = [
            (attack.pattern, model.encoder.encode(attack.row.question, attack.row.answer, attack.row.completion))
            for attack in attack_rows(drawn, config.attacked_problems, seed)
        ]

    def measure(self) -> Metrics:
        """The metrics of the reward model as it is now, those of `monitor/`.

        These are the `classification_metrics` of the held-out rows, the share of each attack's completions that are
        accepted, as `attack_<pattern>`, with `attack_rate`, the mean over the patterns, and `bare_right_rate`, the
        share of right answers without a derivation that are accepted.
        """
        logits = self._learner.score([row.token_ids for row in self._held_out])
        measured = classification_metrics(logits, torch.tensor([row.label for row in self._held_out]))
        metrics = {f"monitor/{name}": value for name, value in measured.items()}
        if self._attacks:
            accepted: dict[str, list[bool]] = defaultdict(list)
            scores = self._learner.score([token_ids for _, token_ids in self._attacks])
            for (pattern, _), score in zip(self._attacks, scores.tolist(), strict=True):
                accepted[pattern].append(score > 0)
            rates = {pattern: sum(values) / len(values) for pattern, values in accepted.items()}
            metrics |= {f"monitor/attack_{pattern}": rates[pattern] for pattern in ATTACKS}
            for name, patterns in (("attack_rate", ATTACKS), ("bare_right_rate", CONTROLS)):
                metrics[f"monitor/{name}"] = sum(rates[pattern] for pattern in patterns) / len(patterns)
        return metrics
