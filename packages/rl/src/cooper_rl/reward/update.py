"""The reward model's update on a step's pairs, and the pairs that are remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from random import Random
from typing import Any

from jaxtyping import Float
from torch import Tensor

from cooper_base.data.labelled import LabelledCompletion
from cooper_rl.engines.base import LabelledBatch, Metrics, PairBatch, RewardModelLearner
from cooper_rl.engines.losses.reward_model import BinaryCrossEntropyLoss, PairwiseLoss, TieLoss
from cooper_rl.engines.reward_input import RewardModelInput
from cooper_rl.reward.context import Logits, RewardModel, logits_of_inputs
from cooper_rl.reward.cooptimization_config import CooptimizationConfig
from cooper_rl.reward.pairs.base import Pair
from cooper_rl.reward.row_selection import Part, pulls, spread_over_origins, unsettled, without_negligible

Encoded = tuple[Pair, list[int], list[int]]
"""A pair with the reward model's inputs: token ids of the positive and of the negative."""

PAIRS_SCORED_AFTER = 16
"""How many of a step's new pairs are scored again after the last update, for `reward_model/pair_accuracy_after` and the
record: of each origin its share, evenly spaced. It changes no training, and a forward pass of all would cost a tenth of
the update."""
SETTLED_BELOW = 0.05
"""A pair or row that pulls less by its own loss is settled: 0.04 of what a pair pulls where nothing is learned. Most
pairs are, once the reward model has learned the policy's mistakes, and policies ended as high without their backward
pass (benchmarks/speed/README.md)."""
REMEMBERED_PAIRS = 4096
"""How many pairs of the run are remembered for replay: enough for any step's draw, and a few MB in a checkpoint."""


def update_reward_model(
    pairs: Sequence[Pair],
    learner: RewardModelLearner,
    encoder: RewardModelInput,
    config: CooptimizationConfig,
    sample_pairs: Callable[[], Sequence[Pair]] = tuple,
    sample_labelled: Callable[[], Sequence[LabelledCompletion]] = tuple,
    unpaired: Sequence[LabelledCompletion] = (),
    known: Logits | None = None,
    judged: Sequence[LabelledCompletion] = (),
) -> tuple[list[Pair], Metrics]:
    """Run `config.epochs` updates, each on all `pairs` and a fresh draw of past pairs and labelled completions.

    The weights of an update's pairs, new and past, are scaled to mean 1 and divided by the number of pairs. `unpaired`
    are wrong completions without a right one. Each has the weight (anchor / 2) / (number of pairs, ties and unpaired
    completions) in a binary cross-entropy of their own. A negative in a pair weighs more in the anchor, because the
    unpaired completions do not count in a pair's denominator. Ties have a mean of their own, times their weights.
    `judged` completions, labelled by a source, have the mean of their binary cross-entropy.

    Returns metrics and the pairs with their logits before and after; a logit before the update is computed only if the
    pair does not have it yet and it is not `known`. Loss and optimizer metrics are those of the last update, and its
    loss metrics are those of all its rows, whether or not `config.skip_gradient_share` left some out of the backward
    pass. Past rows are there so that an update undoes nothing: where all new ones are settled (`SETTLED_BELOW`),
    none are drawn, and the weights stay as they are. Only `PAIRS_SCORED_AFTER` of the pairs have logits after the
    update.
    """
    positives, negatives = encode_pairs(pairs, encoder)
    before, cache = _logits_before(pairs, positives, negatives, learner, known)
    pairs = _with(pairs, before)
    encoded = list(zip(pairs, positives, negatives, strict=True))
    metrics: Metrics = {}

    def parts_with(past: Sequence[Pair], labelled: Sequence[LabelledCompletion]) -> list[Part]:
        rows = [*encoded, *zip(past, *encode_pairs(past, encoder), strict=True)]
        return _parts(rows, labelled, unpaired, judged, encoder, config)

    for _ in range(config.epochs):
        past, labelled = (), ()
        settles = pairs and config.skip_gradient_share
        if not (settles and _settled(learner, parts_with((), ()), cache)):
            past, labelled = sample_pairs(), sample_labelled()
        metrics |= {"pairs/replayed": float(len(past))}
        metrics |= _one_update(learner, parts_with(past, labelled), cache, config)
    if pairs:
        metrics |= pair_accuracy(pairs, before, "before")
    pairs, of_some = _measured_after(pairs, positives, negatives, learner, cache)
    return pairs, metrics | of_some


def _measured_after(
    pairs: Sequence[Pair],
    positives: list[list[int]],
    negatives: list[list[int]],
    learner: RewardModelLearner,
    cache: Logits,
) -> tuple[list[Pair], Metrics]:
    """The pairs, `PAIRS_SCORED_AFTER` of them with their logits after the update, and the accuracy on those."""
    measured = spread_over_origins([pair.negative_origin for pair in pairs], PAIRS_SCORED_AFTER)
    inputs = [positives[i] for i in measured] + [negatives[i] for i in measured]
    after = logits_of_inputs(learner, inputs, cache).reshape(2, len(measured))
    scored = list(pairs)
    for i, (positive, negative) in zip(measured, after.T.tolist(), strict=True):
        scored[i] = replace(pairs[i], positive_logit_after=positive, negative_logit_after=negative)
    return scored, pair_accuracy([pairs[i] for i in measured], after, "after") if pairs else {}


def with_logits(pairs: Sequence[Pair], model: RewardModel) -> list[Pair]:
    """The pairs with their logits before the step's update, for a filter: `model` is the one that learns.

    Logits that are known, because the policy's reward needed them, are not computed again, nor by the update later.
    """
    return _with(pairs, _logits_before(pairs, *encode_pairs(pairs, model.encoder), model.learner)[0])


def _logits_before(
    pairs: Sequence[Pair],
    positives: list[list[int]],
    negatives: list[list[int]],
    learner: RewardModelLearner,
    known: Logits | None = None,
) -> tuple[Float[Tensor, "2 P"], Logits]:
    """The logits of both sides of the pairs, and these and the `known` ones by their inputs."""
    computed = [pair.positive_logit_before for pair in pairs] + [pair.negative_logit_before for pair in pairs]
    rows = zip(positives + negatives, computed, strict=True)  # for the policy's reward
    cache = (known or {}) | {tuple(row): logit for row, logit in rows if logit is not None}
    return logits_of_inputs(learner, positives + negatives, cache).reshape(2, len(pairs)), cache


def _with(pairs: Sequence[Pair], before: Float[Tensor, "2 P"]) -> list[Pair]:
    rows = zip(pairs, *before.tolist(), strict=True)
    return [replace(pair, positive_logit_before=right, negative_logit_before=wrong) for pair, right, wrong in rows]


def _one_update(learner: RewardModelLearner, parts: list[Part], cache: Logits, config: CooptimizationConfig) -> Metrics:
    """Gradients of all parts, then one optimizer step, after which the cached logits are out of date and dropped.

    Without data, no weight changes but the schedule moves on. A step's learning rate thus does not depend on how much
    data earlier steps had.
    """
    metrics: Metrics = {}
    if config.skip_gradient_share and parts:
        logits = _logits(learner, parts, cache)
        parts, metrics = without_negligible(parts, logits, config.skip_gradient_share, SETTLED_BELOW)
    if parts:
        cache.clear()
    for part in parts:
        metrics = part.named(learner.forward_backward(part.batch, part.loss)) | metrics
    return metrics | {f"reward_model/{name}": value for name, value in learner.optim_step().items()}


def _parts(
    pairs: Sequence[Encoded],
    labelled: Sequence[LabelledCompletion],
    unpaired: Sequence[LabelledCompletion],
    judged: Sequence[LabelledCompletion],
    encoder: RewardModelInput,
    config: CooptimizationConfig,
) -> list[Part]:
    """The parts of an update: pairs, ties and labelled completions. Empty parts are left out."""
    parts: list[Part] = []
    ranked = [item for item in pairs if item[0].label == "better"]
    ties = [item for item in pairs if item[0].label == "tie"]
    mean = sum(pair.weight for pair, _, _ in ranked) / len(ranked) if ranked else 1.0
    for name, rows, loss, scale in (("", ranked, config.loss, mean or 1.0), ("tie_", ties, TieLoss(), 1.0)):
        if rows:
            weights = [pair.weight / scale * (1 / len(rows)) for pair, _, _ in rows]
            parts.append(Part(name, PairBatch([row[1] for row in rows], [row[2] for row in rows], weights), loss))
    parts += _labelled_part("labelled_", labelled, encoder)
    if unpaired and isinstance(config.loss, PairwiseLoss):  # other losses have no anchor
        weight = config.loss.anchor / 2 / (len(pairs) + len(unpaired))
        parts += _labelled_part("unpaired_", unpaired, encoder, weight)
    return [*parts, *_labelled_part("judged_", judged, encoder)]


def _labelled_part(
    name: str, rows: Sequence[LabelledCompletion], encoder: RewardModelInput, weight: float | None = None
) -> list[Part]:
    """The cross-entropy of these completions, each with this weight, by default their mean; nothing if there are
    none."""
    if not rows:
        return []
    token_ids = encoder.encode_all([(row.question, row.answer, row.completion) for row in rows])
    weights = [1 / len(rows) if weight is None else weight] * len(rows)
    return [Part(name, LabelledBatch(token_ids, [row.label for row in rows], weights), BinaryCrossEntropyLoss())]


def encode_pairs(pairs: Sequence[Pair], encoder: RewardModelInput) -> tuple[list[list[int]], list[list[int]]]:
    """The reward model's inputs: token ids of the positives, and those of the negatives."""
    positives = encoder.encode_all([(pair.question, pair.answer, pair.positive) for pair in pairs])
    negatives = encoder.encode_all([(pair.question, pair.answer_of_negative, pair.negative) for pair in pairs])
    return positives, negatives


def pair_accuracy(pairs: Sequence[Pair], logits: Float[Tensor, "2 P"], when: str) -> Metrics:
    """Share of pairs whose positive scores higher, overall and by the negative's origin.

    A tie of the two logits counts as wrong. Pairs that should be ties do not count.
    """
    rows = zip(pairs, (logits[0] > logits[1]).tolist(), strict=True)
    right = [(pair.negative_origin, ok) for pair, ok in rows if pair.label == "better"]
    of_origin = {"": [ok for _, ok in right]}
    for name in sorted({origin for origin, _ in right}):
        of_origin[f"_{name}"] = [ok for origin, ok in right if origin == name]
    return {f"reward_model/pair_accuracy_{when}{name}": sum(oks) / len(oks) for name, oks in of_origin.items() if oks}


def _logits(learner: RewardModelLearner, parts: Sequence[Part], cache: Logits) -> Sequence[Float[Tensor, " inputs"]]:
    """The logits of each part's inputs."""
    inputs = [part.batch.inputs for part in parts]
    return logits_of_inputs(learner, [row for rows in inputs for row in rows], cache).split(
        [len(rows) for rows in inputs]
    )


def _settled(learner: RewardModelLearner, parts: Sequence[Part], cache: Logits) -> bool:
    """True if no row's gradient exceeds the threshold."""
    rows = zip(parts, _logits(learner, parts, cache), strict=True)
    return not any(unsettled(part, pulls(part, logits)[0], SETTLED_BELOW).any() for part, logits in rows)


class PairBuffer:
    """A uniform sample, without replacement, of all pairs ever added (Vitter 1985, algorithm R).

    Pairs do not become stale: right stays right and wrong stays wrong. The oldest hacks are therefore as worth
    remembering as the newest, and a first-in-first-out buffer would forget them.
    """

    def __init__(self, seed: int = 0, capacity: int = REMEMBERED_PAIRS):
        self.capacity = capacity
        self._pairs: list[Pair] = []
        self._seen = 0
        self._rng = Random(seed)

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, pairs: Sequence[Pair]) -> None:
        """Offer pairs. Each of the n pairs seen so far is in the buffer with probability min(1, capacity / n)."""
        for pair in pairs:
            self._seen += 1
            if len(self._pairs) < self.capacity:
                self._pairs.append(pair)
            elif (place := self._rng.randrange(self._seen)) < self.capacity:
                self._pairs[place] = pair

    def sample(self, count: int) -> list[Pair]:
        """`count` different pairs from the buffer, or all of them if there are fewer."""
        return self._rng.sample(self._pairs, min(count, len(self._pairs)))

    def state(self) -> dict[str, Any]:
        return {"pairs": [asdict(pair) for pair in self._pairs], "seen": self._seen, "rng": self._rng.getstate()}

    def restore(self, state: dict[str, Any]) -> None:
        self._pairs = [Pair(**pair) for pair in state["pairs"]]
        self._seen = state["seen"]
        restore_rng(self._rng, state["rng"])


def restore_rng(rng: Random, state: Sequence[Any]) -> None:
    """Restore the result of `rng.getstate()` after a round trip through JSON, which turns tuples into lists."""
    version, internal, gauss = state
    rng.setstate((version, tuple(internal), gauss))
