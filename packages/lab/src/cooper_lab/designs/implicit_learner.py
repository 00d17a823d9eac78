"""The learner of an implicit reward model; see `implicit.py`, which says what it computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from cooper_lab.designs.implicit import MARK, rows_of, split_at
from cooper_rl import InputError
from cooper_rl.engines.base import LabelledBatch, Metrics, PairBatch, PerToken, PolicyLearner, RewardModelLearner
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.losses.reward_model import PairLoss, RewardLossOutputs
from cooper_rl.records import Column

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from cooper_lab.designs.implicit import ImplicitEngine


class ImplicitLearner(TorchPolicyLearner, RewardModelLearner):
    """A causal language model whose logit is that of `ImplicitEngine.logits`. Checkpoints are those of a policy."""

    _engine: ImplicitEngine
    _reference: PolicyLearner

    def scoring_by(self, engine: ImplicitEngine, reference: PolicyLearner) -> Self:
        """Give it the engine's formulas and pi_ref. Raises InputError for a folder that is no implicit model's."""
        self._engine, self._reference = engine, reference
        if getattr(self.model.config, MARK, None) is None:
            raise InputError(
                f"{self.config.model}: no implicit reward model; write its folder with "
                "cooper_lab.designs.implicit.implicit_folder"
            )
        return self

    def prompt_of(self, token_ids: Sequence[int]) -> list[int]:
        """What the model reads before the completion, of an input of `reward_model.input`."""
        return split_at(getattr(self.model.config, MARK), token_ids)[0]

    def log_ratios(self, rows: Column, lengths: np.ndarray) -> PerToken:
        """log pi_phi - log pi_ref (nats) of the last `lengths[i]` tokens of each row."""
        return self.logprobs(rows, lengths) - self._reference.logprobs(rows, lengths)

    def token_rewards(self, rows: Column, lengths: np.ndarray) -> PerToken:
        """beta times the log-ratios."""
        return self._engine.beta * self.log_ratios(rows, lengths)

    def score(self, token_ids: list[list[int]]) -> Float[Tensor, " B"]:
        """Logits, float32, on the CPU. An empty completion has 0."""
        rows, lengths = self.completions(token_ids)
        written = np.flatnonzero(lengths)
        scores = torch.zeros(len(token_ids))
        if len(written):
            ratios = rows_of(self.log_ratios(rows.take(written), lengths[written]), lengths[written])
            padded = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(row) for row in ratios], batch_first=True)
            scores[written] = self._engine.logits(padded, torch.from_numpy(lengths[written]).to(padded)).float()
        return scores

    def forward_backward(self, batch: Any, loss: Any) -> Metrics:
        """Accumulate the gradient of the outcome loss on a `LabelledBatch`, or of a `PairLoss` on a `PairBatch`."""
        if isinstance(batch, PairBatch) != isinstance(loss, PairLoss):
            raise TypeError(f"{type(loss).__name__} does not take a {type(batch).__name__}")
        if isinstance(batch, LabelledBatch):
            return self._learn_labels(batch)

        def of_pairs(rows: list[int]) -> RewardLossOutputs:
            part = batch.take(rows)
            positive, negative = self._engine.logits(*self._ratios(part.inputs)).chunk(2)
            return loss.pair_loss(positive, negative, positive.new_tensor(part.weights))

        return self._backward(batch.columns, of_pairs, len(batch.weights))

    def _learn_labels(self, batch: LabelledBatch) -> Metrics:
        prompts = [bytes(np.array(self.prompt_of(row), np.int32)) for row in batch.token_ids]
        weights, margins = self._engine.terms(batch.labels, prompts)

        def of_labels(rows: list[int]) -> RewardLossOutputs:
            ratios_BT, lengths_B = self._ratios([batch.token_ids[i] for i in rows])
            labels_B, margins_B = (
                ratios_BT.new_tensor([values[i] for i in rows]) for values in (batch.labels, margins)
            )
            losses = self._engine.outcome_losses(ratios_BT, lengths_B, labels_B, margins_B)
            accepted = self._engine.logits(ratios_BT, lengths_B) > 0
            total = (losses * losses.new_tensor([batch.weights[i] * weights[i] for i in rows])).sum()
            return RewardLossOutputs(total, {"accuracy": (accepted == (labels_B > 0.5)).to(losses.dtype).sum()})

        return self._backward(batch.columns, of_labels, len(batch.weights))

    def _ratios(self, token_ids: Sequence[Sequence[int]]) -> tuple[Float[Tensor, "B T"], Float[Tensor, " B"]]:
        """The log-ratios of each completion's tokens, 0 after them, and the number of its tokens."""
        rows, lengths = self.completions(token_ids)
        flat, mask = self.run(self._completion_logprobs, list(rows), lengths, 1.0)
        reference = torch.from_numpy(self._reference.logprobs(rows, lengths)).to(flat)
        return flat.new_zeros(mask.shape).masked_scatter(mask, flat - reference), mask.sum(1).to(flat)

    def completions(self, token_ids: Sequence[Sequence[int]]) -> tuple[Column, np.ndarray]:
        """Inputs of `reward_model.input` without the mark, and the number of each completion's tokens, at its end."""
        parts = [split_at(getattr(self.model.config, MARK), row) for row in token_ids]
        return Column.of([[*prompt, *text] for prompt, text in parts]), np.array([len(text) for _, text in parts])
