"""Learners whose processes are elsewhere: the driver's side of them, which holds no tensors."""

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cooper_rl.engines.base import LabelledBatch, Metrics, PairBatch, PolicyBatch
from cooper_rl.engines.cluster.group import RankGroup
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.fsdp2.policy import OpenSender
from cooper_rl.engines.local.frozen_start import FrozenStart
from cooper_rl.losses.policy import PolicyObjective
from cooper_rl.losses.reward_model import BinaryCrossEntropyLoss, PairwiseLoss, TieLoss
from cooper_rl.rollouts import Column


class RemoteLearner:
    """A learner in the processes of a group; implements `Learner`. Every call may raise EngineLost."""

    def __init__(self, group: RankGroup, kind: str, config: LearnerConfig, total_steps: int, trainable: bool) -> None:
        self.config = config
        self.group, self.key = group, group.new_key()
        self.version = 0
        """Changes with the weights."""
        group.call("build", self.key, kind, config, total_steps, trainable)
        weakref.finalize(self, group.forget, self.key)

    def forward_backward(self, batch: Any, loss: Any) -> Metrics:
        """See `Learner`."""
        return self._call("forward_backward", batch, loss)

    def optim_step(self) -> Metrics:
        """See `Learner`."""
        self.version += 1
        return self._call("optim_step")

    def save(self, directory: Path) -> None:
        """See `Learner`. All processes write, so the folder is on a disk that all machines see."""
        self._call("save", Path(directory).absolute())

    def load(self, directory: Path) -> None:
        """See `Learner`."""
        self.version += 1
        self._call("load", Path(directory).absolute())

    def _call(self, verb: str, *arguments: Any) -> Any:
        return self.group.call("learner", self.key, verb, arguments)


class RemotePolicyLearner(RemoteLearner):
    """A causal language model; implements `PolicyLearner`."""

    def __init__(self, group: RankGroup, config: LearnerConfig, total_steps: int, trainable: bool) -> None:
        super().__init__(group, "policy", config, total_steps, trainable)

    def forward_backward(self, batch: PolicyBatch, loss: PolicyObjective) -> Metrics:
        """See `TorchPolicyLearner.forward_backward`."""
        return super().forward_backward(batch, loss)

    def logprobs(
        self, token_ids: Column, lengths: Int[np.ndarray, " B"], temperature: float = 1.0
    ) -> Float[np.ndarray, " N"]:
        """See `TorchPolicyLearner.logprobs`."""
        return np.array(self._call("logprobs", token_ids, lengths, temperature))  # Ray's own arrays are read-only

    def frozen_start(self) -> FrozenStart:
        """The policy before training, in the same shards. Needs `config.lora`."""
        return FrozenStart(self)

    def start_logprobs(
        self, token_ids: Column, lengths: Int[np.ndarray, " B"], temperature: float = 1.0
    ) -> Float[np.ndarray, " N"]:
        """`logprobs` with the adapter switched off."""
        return np.array(self._call("start_logprobs", token_ids, lengths, temperature))

    def connect(self, open_sender: OpenSender) -> None:
        """Have every process open its end of a transfer of weights to samplers elsewhere, such as vLLM engines.

        `open_sender` is pickled; it is called in each process with the sharded model and the process's number.
        """
        self._call("connect", open_sender)

    def send_weights(self, version: str) -> None:
        """Hand all weights over to the samplers that `connect` has reached; they name `version` afterwards."""
        self._call("send_weights", version)


class RemoteRewardModelLearner(RemoteLearner):
    """A sequence-classification model with one label; implements `RewardModelLearner`."""

    def __init__(self, group: RankGroup, config: LearnerConfig, total_steps: int, trainable: bool) -> None:
        super().__init__(group, "reward_model", config, total_steps, trainable)

    def forward_backward(
        self, batch: PairBatch | LabelledBatch, loss: PairwiseLoss | TieLoss | BinaryCrossEntropyLoss
    ) -> Metrics:
        """See `TorchRewardModelLearner.forward_backward`."""
        return super().forward_backward(batch, loss)

    def score(self, token_ids: list[list[int]]) -> Float[Tensor, " B"]:
        """Logits, float32, on the CPU."""
        return torch.from_numpy(np.array(self._call("score", token_ids)))
