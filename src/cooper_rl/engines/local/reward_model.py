"""The reward model, trained in this process."""

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cooper_rl.engines.base import LabelledBatch, Metrics, PairBatch
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local.adapter import check_targets, four_bit
from cooper_rl.engines.local.learner import TorchLearner
from cooper_rl.engines.local.models import check_vocabulary, load_reward_model, load_tokenizer, reward_model_shape
from cooper_rl.engines.local.packing import length_mask, pad_tokens
from cooper_rl.losses.reward_model import (
    BinaryCrossEntropyLoss,
    PairLoss,
    RewardLoss,
    RewardLossOutputs,
    bce_loss,
)
from cooper_rl.rollouts import Column


class TorchRewardModelLearner(TorchLearner):
    """A sequence-classification model with one label that implements `RewardModelLearner`.

    The logit is read at the last token of each row, given the length of the row. Plain transformers code reads it at
    the last token that is not padding. That is the same for a single row, unless the row ends with the padding token
    (which is often also end-of-sequence). The score of a causal model does not depend on the batch (see
    `TorchLearner._hidden_states`).
    """

    def __init__(
        self,
        model: PreTrainedModel,
        config: LearnerConfig,
        total_steps: int,
        tokenizer: PreTrainedTokenizerBase | None = None,
        trainable: bool = True,
    ):
        super().__init__(model, config, total_steps, tokenizer, trainable)
        if self.model.config.num_labels != 1:
            raise ValueError(f"a reward model has one output, but this model has {self.model.config.num_labels}")
        self._reads_last_token = _reads_last_token(self.model)

    @classmethod
    def from_config(
        cls, config: LearnerConfig, total_steps: int, trainable: bool = True, new_head_seed: int | None = None
    ) -> Self:
        """Load `config.model` and its tokenizer. A model without a head needs a `new_head_seed`.

        Raises InputError as `load_reward_model` and `load_tokenizer` do, and for an adapter that does not fit.
        """
        tokenizer = load_tokenizer(config.model)
        if config.lora is not None:
            check_targets(reward_model_shape(config.model), config.lora, config.model)
        model = load_reward_model(config.model, new_head_seed, four_bit(config.lora, config.device))
        check_vocabulary(config.model, tokenizer, model)
        return cls(model, config, total_steps, tokenizer, trainable)

    def forward_backward(self, batch: PairBatch | LabelledBatch, loss: RewardLoss) -> Metrics:
        """Accumulate the gradient. Metrics are `loss` and means over pairs (or rows).

        A `PairBatch` goes with a `PairLoss`, a `LabelledBatch` with `BinaryCrossEntropyLoss`; each loss names further
        metrics. Several batches may share an optimizer step.
        """
        if isinstance(batch, PairBatch) and isinstance(loss, PairLoss):
            positives, negatives = Column.of(batch.positives), Column.of(batch.negatives)
            microbatches = self.microbatches(positives, negatives)
            outputs = (self._pair_loss(positives, negatives, batch.weights, rows, loss) for rows in microbatches)
        elif isinstance(batch, LabelledBatch) and isinstance(loss, BinaryCrossEntropyLoss):
            token_ids = Column.of(batch.token_ids)
            outputs = (self._labelled_loss(token_ids, batch, rows) for rows in self.microbatches(token_ids))
        else:
            raise TypeError(f"{type(loss).__name__} does not take a {type(batch).__name__}")
        return self._backward(outputs, len(batch.weights))

    def score(self, token_ids: list[list[int]]) -> Float[Tensor, " B"]:
        """Logits, float32, on the CPU."""
        scores = torch.zeros(len(token_ids))
        column = Column.of(token_ids)
        for rows in self.microbatches(column):
            with self._inference_pass():
                scores[rows] = self.run(self._logits, [column[i] for i in rows]).float().cpu()
        return scores

    def _pair_loss(
        self, positives: Column, negatives: Column, weights: list[float], rows: list[int], loss: PairLoss
    ) -> RewardLossOutputs:
        with self._training_pass():
            logits = self.run(self._logits, [positives[i] for i in rows] + [negatives[i] for i in rows])
            positive, negative = logits.chunk(2)
            return loss.pair_loss(positive, negative, logits.new_tensor([weights[i] for i in rows]))

    def _labelled_loss(self, token_ids: Column, batch: LabelledBatch, rows: list[int]) -> RewardLossOutputs:
        with self._training_pass():
            logits = self.run(self._logits, [token_ids[i] for i in rows])
            labels = logits.new_tensor([batch.labels[i] for i in rows])
            weights = logits.new_tensor([batch.weights[i] for i in rows])
            return bce_loss(logits, labels, weights)

    def _logits(self, token_ids: list[np.ndarray]) -> Float[Tensor, " B"]:
        """Logits, at least in float32."""
        check_not_empty(token_ids)
        lengths_B = torch.tensor([len(row) for row in token_ids], device=self.device)
        if self._reads_last_token:
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


@torch.no_grad()
def _reads_last_token(model: PreTrainedModel) -> bool:
    """Whether the model is a causal backbone with a linear head on the last token (not, say, BERT with a pooler)."""
    if not isinstance(getattr(model, "score", None), nn.Linear):
        return False
    pad = model.config.pad_token_id
    tokens_1T = torch.tensor([[token for token in range(5) if token != pad]], device=model.device)
    hidden_1TH = model.base_model(tokens_1T, use_cache=False).last_hidden_state
    own = model.get_submodule("score")(hidden_1TH[:, -1])
    return torch.allclose(own, model(tokens_1T, use_cache=False).logits, rtol=1e-4, atol=1e-4)
