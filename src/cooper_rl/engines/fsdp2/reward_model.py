"""The reward model, sharded."""

from typing import Self

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from cooper_rl.engines.base import LabelledBatch, Metrics, PairBatch
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.fsdp2.agreement import added
from cooper_rl.engines.fsdp2.learner import ShardedLearner, on_cpu
from cooper_rl.engines.kernels.packing import families
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner, check_not_empty
from cooper_rl.losses.reward_model import RewardLoss
from cooper_rl.rollouts import Column


class ShardedRewardModelLearner(ShardedLearner):
    """One process of a sequence-classification model with one label; implements `RewardModelLearner`."""

    learner: TorchRewardModelLearner

    @classmethod
    def from_config(cls, config: LearnerConfig, total_steps: int, trainable: bool = True) -> Self:
        """See `TorchRewardModelLearner.from_config`."""
        return cls(TorchRewardModelLearner.from_config(on_cpu(config), total_steps, trainable), config)

    def forward_backward(self, batch: PairBatch | LabelledBatch, loss: RewardLoss) -> Metrics:
        """See `TorchRewardModelLearner.forward_backward`."""
        tokens = (batch.positives, batch.negatives) if isinstance(batch, PairBatch) else (batch.token_ids,)
        columns = [Column.of(rows) for rows in tokens]
        rows = self._rows(*columns)
        mine, nothing = batch.take(rows), _nothing(batch)
        return self.train(
            passes=len(self.learner.microbatches(*(column.take(rows) for column in columns))) if rows else 0,
            compute=lambda: self.learner.forward_backward(mine, loss),
            fill=lambda: self.learner.forward_backward(nothing, loss),
            count=len(rows),
        )

    def score(self, token_ids: list[list[int]]) -> Float[Tensor, " B"]:
        """Logits, float32, on the CPU."""
        column = Column.of(token_ids)
        rows = self._rows(column)
        found = np.zeros(len(token_ids), np.float32)

        def compute() -> None:
            found[rows] = self.learner.score([token_ids[i] for i in rows]).numpy()

        self.infer(
            passes=len(self.learner.microbatches(column.take(rows))) if rows else 0,
            compute=compute,
            fill=lambda: self.learner.score([[0]]),
        )
        return torch.from_numpy(added(found, self.device))

    def _rows(self, first: Column, *others: Column) -> list[int]:
        """This process's rows; what shares a prefix in `first` stays together."""
        for column in (first, *others):  # by all processes, or those without such a row would wait forever
            check_not_empty(list(column))
        costs = np.sum([column.lengths for column in (first, *others)], axis=0).tolist()
        return self.share(costs, [family.rows for family in families(list(first))])


def _nothing(batch: PairBatch | LabelledBatch) -> PairBatch | LabelledBatch:
    """A row, or a pair of rows, that weighs nothing."""
    return PairBatch([[0]], [[0]], [0.0]) if isinstance(batch, PairBatch) else LabelledBatch([[0]], [0.0], [0.0])
