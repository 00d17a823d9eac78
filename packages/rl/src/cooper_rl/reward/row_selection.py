"""The rows of an update of the reward model: those that share a loss, and those that are worth a pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from cooper_rl.engines.base import LabelledBatch, Metrics, PairBatch
from cooper_rl.engines.losses.reward_model import BinaryCrossEntropyLoss, RewardLoss, bce_loss


@dataclass(frozen=True)
class Part:
    """The rows of an update that share a loss. `name` begins the names of their metrics."""

    name: str
    batch: PairBatch | LabelledBatch
    loss: RewardLoss

    def named(self, metrics: Metrics) -> Metrics:
        return {f"reward_model/{self.name}{name}": value for name, value in metrics.items()}


def pulls(part: Part, logits: Float[Tensor, " inputs"]) -> tuple[Float[Tensor, " R"], Metrics]:
    """|dloss / dlogit| of each row (for a pair, the sum over both sides), and the metrics of `forward_backward`.

    `logits` are those of `part.batch.inputs`. The result is float64.
    """
    logits = logits.double().requires_grad_()
    weights = logits.new_tensor(part.batch.weights)
    if isinstance(part.batch, LabelledBatch):
        outputs = bce_loss(logits, logits.new_tensor(part.batch.labels), weights)
    else:
        assert not isinstance(part.loss, BinaryCrossEntropyLoss)
        positive, negative = logits.chunk(2)
        outputs = part.loss.pair_loss(positive, negative, weights)
    (gradient,) = torch.autograd.grad(outputs.loss, logits)
    means = {name: total.item() / len(weights) for name, total in outputs.metric_sums.items()}
    return gradient.abs().reshape(-1, len(weights)).sum(0), {"loss": outputs.loss.item()} | means


def needed(pull: Float[Tensor, " R"], skipped_share: float) -> Bool[Tensor, " R"]:
    """All rows but those of smallest pull, which together have at most `skipped_share` of the sum.

    All rows are needed if the sum is 0 or not finite, as they would be without this choice.
    """
    total = pull.sum()
    is_needed = torch.ones_like(pull, dtype=torch.bool)
    if total > 0 and total.isfinite():
        order = pull.argsort(stable=True)
        is_needed[order[pull[order].cumsum(0) <= skipped_share * total]] = False
    return is_needed


def unsettled(part: Part, pull: Float[Tensor, " R"], below: float) -> Bool[Tensor, " R"]:
    """The rows whose own loss, without their weight, pulls at least that much; and those whose pull is no number.

    A row of weight 0 moves nothing, so it is settled, whatever its logits are.
    """
    weights = pull.new_tensor(part.batch.weights)
    return (weights != 0) & ~(pull < below * weights)


def without_negligible(
    parts: Sequence[Part], logits: Sequence[Float[Tensor, " inputs"]], skipped_share: float, settled_below: float = 0.0
) -> tuple[list[Part], Metrics]:
    """The parts with the rows that need a backward pass, and the metrics of all rows.

    `logits[i]` are those of `parts[i].batch.inputs`, with the weights as they are. The rows of all parts are compared
    with each other. `skipped` is the number of rows left out, also those that pull
    less than `settled_below` by their own loss.

    The loss reaches the weights through the logits: its gradient is sum_r g_r dlogit_r / dweights, with g_r = dloss /
    dlogit_r, which the logits alone determine. A row with a small g_r costs as much as any other and moves the weights
    little. Leaving out the rows of a set S changes the gradient by at most (sum_S |g_r|) max_S |dlogit_r / dweights|.
    Selective-Backprop (arXiv 1910.00762) and importance sampling (arXiv 1803.00942) draw rows at random, more often
    those with a large loss or gradient. Here the logits fix the choice, so that the error has a bound in every update.
    """
    pulls_and_means = [pulls(part, row) for part, row in zip(parts, logits, strict=True)]
    pulls_R = torch.cat([pull for pull, _ in pulls_and_means])
    chosen = needed(pulls_R, skipped_share).split([len(pull) for pull, _ in pulls_and_means])
    kept: list[Part] = []
    metrics: Metrics = {}
    for part, (pull, means), needs in zip(parts, pulls_and_means, chosen, strict=True):
        needs = needs & unsettled(part, pull, settled_below)
        metrics |= part.named(means | {"skipped": float((~needs).sum())})
        if needs.any():
            kept.append(Part(part.name, part.batch.take(needs.nonzero().flatten().tolist()), part.loss))
    return kept, metrics


def spread_over_origins(origins: Sequence[str], limit: int) -> list[int]:
    """The places of `limit` pairs of these origins, or of all where there are no more.

    Each origin gets its share of the limit, at least one while that lasts. The places of an origin are evenly spaced,
    from its first to its last; one alone is from the middle.
    """
    places: dict[str, list[int]] = {}
    for place, origin in enumerate(origins):
        places.setdefault(origin, []).append(place)
    chosen = dict.fromkeys(places, 0)
    for _ in range(min(limit, len(origins))):
        chosen[min(chosen, key=lambda origin: chosen[origin] / len(places[origin]))] += 1
    return sorted(place for origin, rows in places.items() for place in _evenly_spaced(rows, chosen[origin]))


def _evenly_spaced(places: Sequence[int], count: int) -> list[int]:
    if count == 1:
        return [places[len(places) // 2]]
    return [places[i * (len(places) - 1) // (count - 1)] for i in range(count)]
