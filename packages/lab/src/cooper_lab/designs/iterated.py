"""Iterated RLHF: the reward model is retrained every K steps on all pairs so far, not updated in every step.

Iterated reward-model training (arXiv 2505.18126, P: its abstract; what it retrains from, and for how long, is ours).
K = 1 from the start's weights is the most that labels can give; K = 5 asks if every step matters.

At step K, 2K, …: as many optimizer steps as a model that is updated in every step has had (from the start: all so far;
on: K), each on `batch` pairs of the pool, by the loss `cooptimization.loss`. In between the reward model stays as it
is.
The retraining comes where `cooptimization` comes: after the policy's update with `before_policy: null`, which the arms
have.

Silence: no pairs, so no labels; the model's own score pays there. Ties, and wrong completions of groups without a right
one, are not learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from cooper_rl import Pair, PairFilter, PairFilterConfig
from cooper_rl.reward.pairs.base import PAIRS

if TYPE_CHECKING:
    from cooper_rl import PairInputs, RewardModel
    from cooper_rl.engines.losses.reward_model import PairLoss


@PAIRS.register
class Iterated(PairFilterConfig):
    """Keeps all pairs of the run, and trains the reward model on them in every `every`-th step instead of each."""

    metric_names: ClassVar[tuple[str, ...]] = ("pairs/pool", "pairs/retrained")
    kind: Literal["iterated"] = "iterated"
    every: int = Field(default=5, ge=1)
    """K, in steps."""
    from_start: bool = True
    """Whether each retraining begins at the weights of `reward_model.model`, with a new optimizer, or goes on."""
    updates: int = Field(default=1, ge=1)
    """Optimizer steps for each step of the run that a retraining makes up for."""
    batch: int = Field(default=64, ge=1)
    """Pairs in an optimizer step."""

    def build(self, inputs: PairInputs) -> IteratedFilter:
        return IteratedFilter(self, inputs.config.loss)


class IteratedFilter(PairFilter):
    """See `Iterated`. The pool is part of every checkpoint."""

    def __init__(self, config: Iterated, loss: PairLoss) -> None:
        self._config, self._loss = config, loss
        self._steps = 0
        self._pool: list[Pair] = []

    def filter(self, pairs: Sequence[Pair], model: RewardModel) -> tuple[None, dict[str, float]]:
        self._steps += 1
        self._pool += [pair for pair in pairs if pair.label == "better"]
        due = self._steps % self._config.every == 0 and bool(self._pool)
        metrics = self._retrain(model) if due else {}
        return None, {"pairs/pool": float(len(self._pool)), "pairs/retrained": float(due), **metrics}

    def _retrain(self, model: RewardModel) -> dict[str, float]:
        from cooper_rl.engines.base import PairBatch  # noqa: PLC0415 - configuration records do without torch
        from cooper_rl.reward.update import encode_pairs  # noqa: PLC0415

        if self._config.from_start:
            reset(model.learner)
        positives, negatives = encode_pairs(self._pool, model.encoder)
        every = PairBatch(positives, negatives, [pair.weight for pair in self._pool])
        random, metrics = Random(self._steps), {}
        missed = self._steps if self._config.from_start else self._config.every
        for _ in range(self._config.updates * missed):
            rows = every.take(random.sample(range(len(positives)), min(self._config.batch, len(positives))))
            total = sum(rows.weights) or 1.0
            batch = PairBatch(rows.positives, rows.negatives, [weight / total for weight in rows.weights])
            metrics = model.learner.forward_backward(batch, self._loss)
            metrics |= model.learner.optim_step()
        return {f"reward_model/{name}": value for name, value in metrics.items()}

    def state(self) -> dict[str, Any]:
        return {"steps": self._steps, "pool": [asdict(pair) for pair in self._pool]}

    def restore(self, state: dict[str, Any]) -> None:
        self._steps = state["steps"]
        self._pool = [Pair(**pair) for pair in state["pool"]]


def reset(learner: Any) -> None:
    """Give a learner of this process the weights of its own model folder, and a new optimizer and schedule."""
    from pathlib import Path  # noqa: PLC0415

    with TemporaryDirectory() as folder:
        type(learner).from_config(learner.config, learner.total_steps).save(Path(folder))
        learner.load(Path(folder))
