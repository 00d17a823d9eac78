"""How a learner's weights get to the engines: the side of the process that samples."""

from typing import Protocol

import torch
from transformers import PreTrainedModel

from cooper_rl.engines.base import PolicyLearner
from cooper_rl.engines.vllm.config import VllmConfig
from cooper_rl.engines.vllm.transfer import ModelWeights, Receiver, WeightSender


class Handover(Protocol):
    """A connection from learners to engines, opened when it is first used and again after `close`."""

    def send(self, learner: PolicyLearner, version: str) -> None:
        """Hand all weights over; the engines name `version` afterwards.

        Raises TypeError for a learner whose weights cannot be sent from here, WeightPushError where it fails.
        """

    def close(self) -> None:
        """Leave the connection."""


class HandoverFromHere:
    """From a learner whose model is in this process."""

    def __init__(self, receiver: Receiver, dtype: torch.dtype, config: VllmConfig, backend: str):
        self._receiver, self._dtype = receiver, dtype
        self._config, self._backend = config, backend
        self._sender: WeightSender | None = None
        self._sends: PreTrainedModel | None = None

    def send(self, learner: PolicyLearner, version: str) -> None:
        """See `Handover`."""
        model = getattr(learner, "model", None)
        if not isinstance(model, PreTrainedModel):
            raise TypeError(f"the vLLM sampler needs a learner with a `model` in this process, not {learner!r}")
        if self._sender is None or self._sends is not model:
            self.close()
            self._sender = WeightSender(
                self._backend,
                ModelWeights(model, self._dtype),
                self._receiver,
                host=self._config.transfer_host,
                timeout_s=self._config.timeout_s,
            )
            self._sends = model
        self._sender.send(version)

    def close(self) -> None:
        """See `Handover`."""
        if self._sender is not None:
            self._sender.close()
        self._sender = self._sends = None
