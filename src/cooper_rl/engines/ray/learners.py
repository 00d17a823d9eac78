"""The driver's side of learners and samplers in other processes; it holds no tensors. Calls may raise EngineLost."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cooper_rl.engines.base import Metrics, PolicyLearner
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.fsdp2 import OpenSender, ShardedPolicyLearner, ShardedRewardModelLearner
from cooper_rl.engines.ray.ranks import RankGroup, RankSampler
from cooper_rl.rollouts import Column, Samples


class RemoteLearner:
    """A learner in the processes of a group; implements `Learner`."""

    sharded: ClassVar[Any]
    """The class of the learner in each process."""

    def __init__(self, group: RankGroup, config: LearnerConfig, total_steps: int, trainable: bool) -> None:
        self.config, self.group = config, group
        self.version = 0
        """Changes with the weights."""
        self.key = group.build(self, self.sharded.from_config, config, total_steps, trainable)

    def forward_backward(self, batch: Any, loss: Any) -> Metrics:
        return self._call("forward_backward", batch, loss)

    def optim_step(self) -> Metrics:
        self.version += 1
        return self._call("optim_step")

    def save(self, directory: Path) -> None:
        """See `Learner`. All processes write, so all machines must see the folder's disk."""
        self._call("save", Path(directory).absolute())

    def load(self, directory: Path) -> None:
        self.version += 1
        self._call("load", Path(directory).absolute())

    def _call(self, verb: str, *arguments: Any) -> Any:
        return self.group.call("learner", self.key, verb, *arguments)[0]


class RemotePolicyLearner(RemoteLearner):
    """A causal language model; implements `PolicyLearner`, and `WeightSender` once it is connected."""

    sharded = ShardedPolicyLearner

    def logprobs(
        self, token_ids: Column, lengths: Int[np.ndarray, " B"], temperature: float = 1.0, adapter: bool = True
    ) -> Float[np.ndarray, " N"]:
        found = self._call("logprobs", token_ids, lengths, temperature, adapter)
        return np.array(found)  # Ray's own arrays are read-only

    def connect(self, open_sender: OpenSender) -> None:
        """Have every process open its end of a transfer of weights to samplers elsewhere, such as vLLM engines.

        `open_sender` is pickled; each process calls it with the sharded model and the process's number.
        """
        self._call("connect", open_sender)

    def sync_weights(self, version: str) -> None:
        """See `WeightSender`. Raises RuntimeError before `connect`."""
        self._call("sync_weights", version)

    def disconnect(self) -> None:
        """Nothing: the processes leave the transfer when the next one is opened."""


class RemoteRewardModelLearner(RemoteLearner):
    """A sequence-classification model with one label; implements `RewardModelLearner`."""

    sharded = ShardedRewardModelLearner

    def score(self, token_ids: list[list[int]]) -> Float[Tensor, " B"]:
        return torch.from_numpy(np.array(self._call("score", token_ids)))


class RemoteSampler:
    """Native samplers in the processes of the policy; each draws for a share of the prompts. Implements `Sampler`.

    Each process holds a copy of all weights beside its shard, renewed by `sync_weights`.
    """

    def __init__(self, group: RankGroup, policy: LearnerConfig, max_rows: int) -> None:
        self._group = group
        self._synced: tuple[str, int] | None = None
        self._key = group.build(self, RankSampler, policy, max_rows)

    def sync_weights(self, learner: PolicyLearner) -> None:
        """See `Sampler`. Raises TypeError for a learner of other processes."""
        if not isinstance(learner, RemotePolicyLearner) or learner.group is not self._group:
            raise TypeError(
                f"this sampler takes the weights of a policy learner of its own processes, not of {learner!r}"
            )
        wanted = (learner.key, learner.version)
        if wanted != self._synced:
            self._group.call("sync_weights", self._key, learner.key)
            self._synced = wanted

    def sample(self, prompts: Sequence[Sequence[int]], n: int, params: SamplingParams, seed: int) -> Samples:
        """See `NativeSampler.sample`."""
        if self._synced is None:
            raise RuntimeError("no weights to sample with: call sync_weights first")
        parts: list[Samples] = self._group.call("sample", self._key, list(prompts), n, params, seed)
        return Samples(
            token_ids=Column.of([row for part in parts for row in part.token_ids]),
            logprobs=np.concatenate([part.logprobs for part in parts]),
            stopped=np.concatenate([part.stopped for part in parts]),
            texts=[text for part in parts for text in part.texts],
        )
