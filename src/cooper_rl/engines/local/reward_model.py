"""The reward model, trained in this process."""

from collections.abc import Sequence
from functools import partial
from typing import Self

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from cooper_rl.engines.base import LabelledBatch, Metrics, PairBatch
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local.learner import TorchLearner
from cooper_rl.engines.local.models import load_reward_model, load_to_train
from cooper_rl.engines.local.packing import length_mask, pad_tokens
from cooper_rl.losses.reward_model import PairLoss, RewardLoss, RewardLossOutputs, bce_loss
from cooper_rl.rollouts import Column


class TorchRewardModelLearner(TorchLearner):
    """A sequence-classification model with one label that implements `RewardModelLearner`.

    The logit is read at the last token of each row. (Plain transformers code reads it at the last token that is not
    padding, which often is also end-of-sequence.) The score of a causal model does not depend on the batch.
    """

    @classmethod
    def from_config(
        cls, config: LearnerConfig, total_steps: int, trainable: bool = True, new_head_seed: int | None = None
    ) -> Self:
        """Load `config.model` and its tokenizer. A model without a head needs a `new_head_seed`.

        Raises InputError as `load_to_train` and `load_reward_model` do.
        """
        load = partial(load_reward_model, new_head_seed=new_head_seed)
        model, tokenizer = load_to_train(config, AutoModelForSequenceClassification, load)
        return cls(model, config, total_steps, tokenizer, trainable)

    def _has_plain_head(self) -> bool:
        config = self.model.config
        if config.num_labels != 1:
            raise ValueError(f"a reward model has one output, but this model has {config.num_labels}")
        tokens = [token for token in range(5) if token != config.pad_token_id]
        return self._agrees(getattr(self.model, "score", None), tokens, -1)  # not, say, BERT with its pooler

    def forward_backward(self, batch: PairBatch | LabelledBatch, loss: RewardLoss) -> Metrics:
        """Accumulate the gradient. Metrics are `loss` and means over pairs (or rows).

        A `PairBatch` goes with a `PairLoss`, a `LabelledBatch` with `BinaryCrossEntropyLoss`. Several batches may share
        an optimizer step.
        """
        if isinstance(batch, PairBatch) != isinstance(loss, PairLoss):
            raise TypeError(f"{type(loss).__name__} does not take a {type(batch).__name__}")
        columns = batch.columns

        def loss_of(rows: list[int]) -> RewardLossOutputs:
            logits = self.run(self._logits, [column[i] for column in columns for i in rows])
            part = batch.take(rows)
            weights = logits.new_tensor(part.weights)
            if isinstance(part, LabelledBatch):
                return bce_loss(logits, logits.new_tensor(part.labels), weights)
            assert isinstance(loss, PairLoss)
            return loss.pair_loss(*logits.chunk(2), weights)

        return self._backward(columns, loss_of, len(batch.weights))

    def score(self, token_ids: list[list[int]]) -> Float[Tensor, " B"]:
        """Logits, float32, on the CPU."""
        scores = torch.zeros(len(token_ids))
        column = Column.of(token_ids)
        for rows in self.microbatches(column):
            with torch.no_grad(), self._autocast():
                scores[rows] = self.run(self._logits, [column[i] for i in rows]).float().cpu()
        return scores

    def _logits(self, token_ids: list[np.ndarray]) -> Float[Tensor, " B"]:
        """Logits, at least in float32."""
        check_not_empty(token_ids)
        lengths_B = torch.tensor([len(row) for row in token_ids], device=self.device)
        if self._plain_head:
            hidden_TH, places_BL = self._hidden_states(token_ids)
            last_B = places_BL.gather(1, lengths_B[:, None] - 1).squeeze(1)
            logits_B1 = self.model.get_submodule("score")(hidden_TH.index_select(0, last_B))
        else:
            tokens_BT = pad_tokens(token_ids, self.model.config.pad_token_id or 0, self.device)
            mask_BT = length_mask(lengths_B, tokens_BT.shape[1])
            logits_B1 = self.model(tokens_BT, attention_mask=mask_BT.long()).logits
        # A copy, because FSDP2 hangs its backward pass on what is returned, which a view could lose.
        return logits_B1.squeeze(-1).to(torch.promote_types(logits_B1.dtype, torch.float32), copy=True)


def check_not_empty(token_ids: Sequence[Sequence[int] | np.ndarray]) -> None:
    """Raises ValueError where a row has no token."""
    if not all(map(len, token_ids)):
        raise ValueError("a reward-model input is empty")
