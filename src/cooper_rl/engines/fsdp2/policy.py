"""The policy, sharded."""

from collections.abc import Callable
from typing import Protocol, Self

import numpy as np
from jaxtyping import Float, Int
from transformers import PreTrainedModel

from cooper_rl.engines.base import Metrics, PolicyBatch
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.fsdp2.agreement import added
from cooper_rl.engines.fsdp2.learner import ShardedLearner, on_cpu
from cooper_rl.engines.fsdp2.shares import same_prompt
from cooper_rl.engines.local.adapter import adapter_off
from cooper_rl.engines.local.policy import TorchPolicyLearner, check_prompts
from cooper_rl.losses.policy import PolicyObjective
from cooper_rl.rollouts import Column, offsets_of


class WeightSender(Protocol):
    """One process's end of a transfer of weights to samplers; the first process sends, the others take part."""

    def send(self, version: str) -> None:
        """Hand all weights over; the samplers name `version` afterwards. Parameters may be DTensors."""
        ...

    def close(self) -> None:
        """Leave the transfer."""
        ...


OpenSender = Callable[[PreTrainedModel, int], WeightSender]
"""Opens a process's end of a transfer, given the sharded model and the process's number."""


class ShardedPolicyLearner(ShardedLearner):
    """One process of a causal language model; implements `PolicyLearner`."""

    learner: TorchPolicyLearner
    _sender: WeightSender | None = None

    @classmethod
    def from_config(cls, config: LearnerConfig, total_steps: int, trainable: bool = True) -> Self:
        """See `TorchPolicyLearner.from_config`."""
        return cls(TorchPolicyLearner.from_config(on_cpu(config), total_steps, trainable), config)

    def forward_backward(self, batch: PolicyBatch, loss: PolicyObjective) -> Metrics:
        """See `TorchPolicyLearner.forward_backward`."""
        mine = _rows_of(batch, self._rows(batch.token_ids, batch.lengths))
        return self.train(
            passes=len(self.learner.microbatches(mine.token_ids)) if len(mine.lengths) else 0,
            compute=lambda: self.learner.forward_backward(mine, loss),
            fill=lambda: self.learner.forward_backward(_nothing(batch), loss),
            count=len(mine.advantages),
        )

    def logprobs(
        self, token_ids: Column, lengths: Int[np.ndarray, " B"], temperature: float = 1.0
    ) -> Float[np.ndarray, " N"]:
        """See `TorchPolicyLearner.logprobs`."""
        rows = self._rows(token_ids, lengths)
        mine, places = token_ids.take(rows), Column(np.arange(lengths.sum()), offsets_of(lengths)).places(rows)
        found = np.zeros(int(lengths.sum()), np.float64 if self.learner.model.dtype.itemsize == 8 else np.float32)

        def compute() -> None:
            found[places] = self.learner.logprobs(mine, lengths[rows], temperature)

        self.infer(
            passes=len(self.learner.microbatches(mine)) if rows else 0,
            compute=compute,
            fill=lambda: self.learner.logprobs(_TWO_TOKENS, np.array([1]), temperature),
        )
        return added(found, self.device)

    def start_logprobs(
        self, token_ids: Column, lengths: Int[np.ndarray, " B"], temperature: float = 1.0
    ) -> Float[np.ndarray, " N"]:
        """`logprobs` with the adapter switched off."""
        with adapter_off(self.learner.model):
            return self.logprobs(token_ids, lengths, temperature)

    def connect(self, open_sender: OpenSender) -> None:
        """Open this process's end of a transfer, in place of the one before."""
        if self._sender is not None:
            self._sender.close()
        self._sender = open_sender(self.learner.model, self.rank)

    def send_weights(self, version: str) -> None:
        """Hand all weights over as they are now; every process calls this, and makes each weight whole."""
        if self._sender is None:
            raise RuntimeError("no transfer is open: call connect first")
        self.learner.model.reshard()  # pyright: ignore[reportCallIssue]
        self._sender.send(version)

    def _rows(self, token_ids: Column, lengths: Int[np.ndarray, " B"]) -> list[int]:
        check_prompts(token_ids.lengths, lengths)  # by all processes, or those without such a row would wait forever
        return self.share(token_ids.lengths.tolist(), same_prompt(token_ids, lengths))


_TWO_TOKENS = Column.of([[0, 0]])


def _rows_of(batch: PolicyBatch, rows: list[int]) -> PolicyBatch:
    tokens = Column(batch.advantages, batch.offsets).places(rows)
    return PolicyBatch(
        token_ids=batch.token_ids.take(rows),
        lengths=batch.lengths[rows],
        advantages=batch.advantages[tokens],
        weights=batch.weights[tokens],
        old_logprobs=batch.old_logprobs[tokens],
        sampler_logprobs=batch.sampler_logprobs[tokens],
        reference_logprobs=None if batch.reference_logprobs is None else batch.reference_logprobs[tokens],
        temperature=batch.temperature,
    )


def _nothing(batch: PolicyBatch) -> PolicyBatch:
    """One completion of one token, which weighs nothing."""
    zero = np.zeros(1)
    reference = None if batch.reference_logprobs is None else zero
    return PolicyBatch(_TWO_TOKENS, np.array([1]), zero, zero, zero, zero, reference, batch.temperature)
