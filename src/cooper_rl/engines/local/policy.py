"""The policy, trained in this process."""

from contextlib import nullcontext
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import AutoModelForCausalLM

from cooper_rl.engines.base import Metrics, PolicyBatch
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local.adapter import adapter_off
from cooper_rl.engines.local.learner import TorchLearner
from cooper_rl.engines.local.models import load_policy, load_to_train
from cooper_rl.engines.local.packing import length_mask
from cooper_rl.losses.policy import PolicyLossInputs, PolicyLossOutputs, PolicyObjective, policy_loss
from cooper_rl.rollouts import Column, offsets_of

LOGITS_PER_CHUNK = 2**24
"""64 MiB in float32: 110 tokens with a vocabulary of 152 k, or a whole batch of a toy model."""


class TorchPolicyLearner(TorchLearner):
    """A causal language model that implements `PolicyLearner`. Log-probabilities do not depend on the batch."""

    @classmethod
    def from_config(cls, config: LearnerConfig, total_steps: int, trainable: bool = True) -> Self:
        """Load `config.model` and its tokenizer. Raises InputError as `load_to_train` and `load_policy` do."""
        model, tokenizer = load_to_train(config, AutoModelForCausalLM, load_policy)
        return cls(model, config, total_steps, tokenizer, trainable)

    def _has_plain_head(self) -> bool:
        # Some models scale or cap their logits (Gemma 2, Granite, Cohere).
        head: Any = self.model.get_output_embeddings()
        return isinstance(head, nn.Linear) and self._agrees(head, range(min(4, head.weight.shape[0])), slice(None))

    def forward_backward(self, batch: PolicyBatch, loss: PolicyObjective) -> Metrics:
        """Accumulate the gradient. Metrics are `loss` and the loss's own metrics as means over completion tokens."""

        def loss_of(rows: list[int]) -> PolicyLossOutputs:
            part = batch.take(rows)
            flat, mask = self.run(self._completion_logprobs, list(part.token_ids), part.lengths, batch.temperature)

            def padded(values: Float[Tensor, " N"]) -> Float[Tensor, "B C"]:
                return flat.new_zeros(mask.shape).masked_scatter(mask, values.to(flat))

            numbers = {name: padded(torch.from_numpy(values)) for name, values in part.flat.items()}
            return policy_loss(PolicyLossInputs(padded(flat), mask=mask, **numbers), loss.loss, loss.kl)

        return self._backward([batch.token_ids], loss_of, len(batch.advantages))

    def logprobs(
        self, token_ids: Column, lengths: Int[np.ndarray, " B"], temperature: float = 1.0, adapter: bool = True
    ) -> Float[np.ndarray, " N"]:
        """As in `PolicyLearner`, in the model's precision, at least float32."""
        places = Column(np.arange(lengths.sum()), offsets_of(lengths))
        results = np.empty(len(places.values), np.float64 if self.model.dtype == torch.float64 else np.float32)
        with nullcontext() if adapter else adapter_off(self.model):
            for rows in self.microbatches(token_ids):
                with torch.no_grad(), self._autocast():
                    chosen = [token_ids[i] for i in rows]
                    flat, _ = self.run(self._completion_logprobs, chosen, lengths[rows], temperature)
                results[places.places(rows)] = flat.cpu().numpy()
        return results

    def _completion_logprobs(
        self, token_ids: list[np.ndarray], lengths: Int[np.ndarray, " B"], temperature: float
    ) -> tuple[Float[Tensor, " N"], Bool[Tensor, "B C"]]:
        """Log-probabilities of all completion tokens, row after row, and the mask that lays them out as [B, C]."""
        check_prompts(np.array([len(row) for row in token_ids]), lengths)
        # The token at position t is predicted at t - 1, so the last one of a row is not read.
        inputs = [row[:-1] for row in token_ids]
        targets = np.concatenate([row[len(row) - n :] for row, n in zip(token_ids, lengths, strict=True)])
        targets_N = torch.from_numpy(targets.astype(np.int64)).to(self.device)
        lengths_B = torch.from_numpy(lengths).to(self.device)
        totals_B = torch.tensor([len(row) for row in inputs], device=self.device)
        states, places_BL = self._hidden_states(inputs)
        width = places_BL.shape[1]
        predicts_BL = length_mask(totals_B, width) & ~length_mask(totals_B - lengths_B, width)
        states = states.index_select(0, places_BL[predicts_BL])
        if self._plain_head:
            flat = token_logprobs(states, self.model.get_output_embeddings(), targets_N, temperature)  # pyright: ignore[reportArgumentType]
        else:
            flat = gather_logprobs(states, targets_N, temperature)
        return flat, length_mask(lengths_B, int(lengths.max()))


def check_prompts(totals: Int[np.ndarray, " B"], lengths: Int[np.ndarray, " B"]) -> None:
    """Raises ValueError where a completion fills its row: nothing predicts its first token."""
    if (lengths >= totals).any():
        raise ValueError("a completion needs at least one prompt token before it")


def token_logprobs(
    hidden: Float[Tensor, "N H"],
    head: nn.Linear,
    targets: Int[Tensor, " N"],
    temperature: float = 1.0,
    logits_per_chunk: int = LOGITS_PER_CHUNK,
) -> Float[Tensor, " N"]:
    """log softmax(head(hidden) / temperature)[target] in nats, at least in float32.

    With more than `logits_per_chunk` logits in total, the logits of each chunk are recomputed in the backward pass.
    """

    def logprobs(hidden: Tensor, targets: Tensor) -> Tensor:
        return gather_logprobs(head(hidden), targets, temperature)

    rows = max(1, logits_per_chunk // head.weight.shape[0])
    if len(hidden) <= rows:
        return logprobs(hidden, targets)
    chunks = zip(hidden.split(rows), targets.split(rows), strict=True)
    return torch.cat([checkpoint(logprobs, *chunk, use_reentrant=False) for chunk in chunks])  # pyright: ignore[reportArgumentType]


def gather_logprobs(
    logits: Float[Tensor, "N V"], targets: Int[Tensor, " N"], temperature: float = 1.0
) -> Float[Tensor, " N"]:
    """log softmax(logits / temperature)[target] in nats, at least in float32."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if temperature != 1:
        logits = logits / temperature
    return -F.cross_entropy(logits, targets, reduction="none")
