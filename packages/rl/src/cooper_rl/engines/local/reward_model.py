"""The learner of a reward model: a classification head, or the difference between two tokens' logits."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from cooper_base.errors import InputError
from cooper_rl.engines.base import LabelledBatch, Metrics, PairBatch, RewardModelLearner
from cooper_rl.engines.config import YesNo
from cooper_rl.engines.local.learner import TorchLearner, told
from cooper_rl.engines.local.packing import length_mask, pad_tokens
from cooper_rl.engines.losses.reward_model import PairLoss, RewardLoss, RewardLossOutputs, bce_loss
from cooper_rl.engines.model_folder import YES_NO, recorded
from cooper_rl.records import Column


class TorchRewardModelLearner(TorchLearner, RewardModelLearner):
    """A sequence-classification model with one label that implements `RewardModelLearner`; or a causal language model
    with `yes_no` in its config, whose logit is (logit(yes) - logit(no)) / temperature.

    The logit is read at the last token of each row. (Plain transformers code reads it at the last token that is not
    padding, which often is also end-of-sequence.) The score of a causal model does not depend on the batch.
    """

    scores = True

    @cached_property
    def _yes_no(self) -> YesNo | None:
        asked = getattr(self.model.config, YES_NO, None)
        return None if asked is None else YesNo.model_validate(asked)

    def load(self, directory: Path) -> None:
        """As in `TorchLearner`. Raises InputError too for a checkpoint of the other `kind` of reward model."""
        if (directory / "config.json").is_file() and bool(recorded(str(directory))) != bool(self._yes_no):
            kind = "head" if self._yes_no else "yes_no"
            raise InputError(f"{directory}: was trained with kind: {kind}; resume it with that setting")
        super().load(directory)

    def _has_plain_head(self) -> bool:
        config = self.model.config
        if self._yes_no:
            return super()._has_plain_head()
        if config.num_labels != 1:
            raise ValueError(f"a reward model has one output, but this model has {config.num_labels}")
        tokens = [token for token in range(5) if token != config.get_text_config().pad_token_id]
        return self._agrees(getattr(self.model, "score", None), tokens, -1)  # not, say, BERT with its pooler

    def forward_backward(self, batch: PairBatch | LabelledBatch, loss: RewardLoss) -> Metrics:
        """Accumulate the gradient of a `PairLoss` on a `PairBatch`, or of a `BinaryCrossEntropyLoss` on a
        `LabelledBatch`. Metrics are `loss` and means over pairs (or rows).
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
            positive, negative = logits.chunk(2)
            return loss.pair_loss(positive, negative, weights)

        return self._backward(columns, loss_of, len(batch.weights))

    def score(self, token_ids: list[list[int]]) -> Float[Tensor, " B"]:
        """Logits, float32, on the CPU."""
        scores = torch.zeros(len(token_ids))
        column = Column.of(token_ids)
        for rows in told(self.microbatches(column), "scores"):
            with torch.no_grad(), self._autocast():
                scores[rows] = self.run(self._logits, [column[i] for i in rows]).float().cpu()
        return scores

    def states(self, token_ids: list[list[int]]) -> Float[Tensor, "B H"]:
        """What the head reads of each row, the last hidden state, in float32 on the CPU: for a part that looks inside
        the model. The logit is head(state). Raises InputError for a model whose head reads more than that."""
        if not self._plain_head or self._yes_no:
            raise InputError(f"{self.config.model}: has no linear head on one state, which a part of this run reads")
        check_not_empty(token_ids)
        column, states = Column.of(token_ids), torch.zeros(len(token_ids), self.model.config.hidden_size)
        for rows in self.microbatches(column):
            with torch.no_grad(), self._autocast():
                states[rows] = self.run(self._last_states, [column[i] for i in rows]).float().cpu()
        return states

    def _last_states(self, token_ids: list[np.ndarray]) -> Float[Tensor, "B H"]:
        lengths_B = torch.tensor([len(row) for row in token_ids], device=self.device)
        states, places_BL = self._hidden_states(token_ids)
        return states.index_select(0, places_BL.gather(1, lengths_B[:, None] - 1).squeeze(1))

    def _logits(self, token_ids: list[np.ndarray]) -> Float[Tensor, " B"]:
        """Equal rows are computed once: a positive stands in many pairs. Their gradients add up in its logit."""
        check_not_empty(token_ids)
        keys = [row.tobytes() for row in token_ids]
        different = dict(zip(keys, token_ids, strict=True))
        places = {key: place for place, key in enumerate(different)}
        token_ids = list(different.values())
        if self._plain_head or self._yes_no:
            states = self._last_states(token_ids)
            logits_U1 = self._asked(states, self._yes_no) if self._yes_no else self.model.get_submodule("score")(states)
        else:
            lengths_U = torch.tensor([len(row) for row in token_ids], device=self.device)
            pad_id = self.model.config.get_text_config().pad_token_id or 0
            # A head that reads the first token, or the last, needs padding on the side where its tokenizer pads.
            if self.tokenizer is not None and self.tokenizer.padding_side == "left":
                tokens_UL = pad_tokens([row[::-1] for row in token_ids], pad_id, self.device).flip(1)
                mask_UL = length_mask(lengths_U, tokens_UL.shape[1]).flip(1)
            else:
                tokens_UL = pad_tokens(token_ids, pad_id, self.device)
                mask_UL = length_mask(lengths_U, tokens_UL.shape[1])
            logits_U1 = self.model(tokens_UL, attention_mask=mask_UL.long()).logits
        logits_U = logits_U1.squeeze(-1).to(torch.promote_types(logits_U1.dtype, torch.float32))
        # A copy, because FSDP2 hangs its backward pass on what is returned, which a view could lose.
        return logits_U.index_select(0, torch.tensor([places[key] for key in keys], device=self.device))

    def _asked(self, states: Float[Tensor, "B H"], asked: YesNo) -> Float[Tensor, "B 1"]:
        """Logits from last hidden states (without a plain head, from the logits of all tokens)."""
        exact = torch.promote_types(states.dtype, torch.float32)  # under autocast the sum below stays float32 too
        if self._plain_head:
            head: Any = self.model.get_output_embeddings()
            yes, no = head.weight[[asked.yes, asked.no]].to(exact)
            logits_B = (states.to(exact) * (yes - no)).sum(-1)
            if head.bias is not None:
                logits_B = logits_B + head.bias[asked.yes] - head.bias[asked.no]
        else:
            logits_B = states[:, asked.yes].to(exact) - states[:, asked.no].to(exact)
        return logits_B[:, None] / asked.temperature


def check_not_empty(token_ids: Sequence[Sequence[int] | np.ndarray]) -> None:
    if not all(map(len, token_ids)):
        raise ValueError("a reward-model input is empty")
