"""Weights from the policy's processes to vLLM engines. The driver only says when."""

from collections.abc import Callable
from dataclasses import dataclass

import ray
import torch
from transformers import PreTrainedModel

from cooper_rl.engines.base import PolicyLearner
from cooper_rl.engines.cluster.learners import RemotePolicyLearner
from cooper_rl.engines.vllm.transfer import ModelWeights, Receiver, WeightSender


@dataclass(frozen=True)
class OpenSender:
    """Opens a process's end of a transfer; pickled, and called in each process of the policy."""

    receiver: Receiver
    dtype: torch.dtype
    backend: str
    timeout_s: float

    def __call__(self, model: PreTrainedModel, rank: int) -> WeightSender:
        """Weights are gathered one at a time. Raises WeightPushError where the engines cannot be reached."""
        weights, host = ModelWeights(model, self.dtype), ray.util.get_node_ip_address()
        return WeightSender(self.backend, weights, self.receiver, rank=rank, host=host, timeout_s=self.timeout_s)


class HandoverFromRanks:
    """From a policy that is sharded over processes (`Handover`)."""

    def __init__(self, receiver: Callable[[], Receiver], dtype: torch.dtype, backend: str, timeout_s: float) -> None:
        """`receiver` is asked for each connection, as the engines may be others by then."""
        self._receiver = receiver
        self._dtype, self._backend, self._timeout_s = dtype, backend, timeout_s
        self._connected: RemotePolicyLearner | None = None

    def send(self, learner: PolicyLearner, version: str) -> None:
        """See `Handover`."""
        if not isinstance(learner, RemotePolicyLearner):
            raise TypeError(f"the engines of a cluster take the weights of a sharded policy learner, not {learner!r}")
        if self._connected is not learner:
            learner.connect(OpenSender(self._receiver(), self._dtype, self._backend, self._timeout_s))
            self._connected = learner
        learner.send_weights(version)

    def close(self) -> None:
        """See `Handover`. The processes leave the transfer when the next one is opened."""
        self._connected = None
