"""One process of a group: shards of learners, and a copy of the policy to sample from. It decides nothing."""

import socket
from datetime import timedelta
from typing import Any

import ray
import torch
import torch.distributed as dist

from cooper_rl.engines.cluster.local_sampler import LocalSampler
from cooper_rl.engines.cluster.process import begin_process
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.fsdp2.learner import ShardedLearner
from cooper_rl.engines.fsdp2.policy import ShardedPolicyLearner
from cooper_rl.engines.fsdp2.reward_model import ShardedRewardModelLearner

KINDS: dict[str, Any] = {"policy": ShardedPolicyLearner, "reward_model": ShardedRewardModelLearner}


class Rank:
    """A Ray actor. Verbs take their arguments as one tuple, which Ray brings to each machine once."""

    def __init__(self, log: str, threads: int, path: list[str]) -> None:
        """See `begin_process`."""
        begin_process(log, threads, path)
        self.learners: dict[str, ShardedLearner] = {}
        self._samplers: dict[str, LocalSampler] = {}

    def address(self) -> str:
        """Where the processes of the group may meet: this machine and a free port."""
        host = ray.util.get_node_ip_address()
        with socket.socket() as free:
            free.bind((host, 0))
            return f"tcp://{host}:{free.getsockname()[1]}"

    def join(self, address: str, rank: int, ranks: int, timeout_s: float) -> None:
        """Meet the others."""
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(
            backend, init_method=address, rank=rank, world_size=ranks, timeout=timedelta(seconds=timeout_s)
        )

    def build(self, given: tuple[str, str, LearnerConfig, int, bool]) -> None:
        """Load a learner of a kind and keep it under a key."""
        key, kind, config, total_steps, trainable = given
        self.learners[key] = KINDS[kind].from_config(config, total_steps, trainable)

    def learner(self, given: tuple[str, str, tuple[Any, ...]]) -> Any:
        """Call a verb of the learner with this key; the first process returns the result."""
        key, verb, arguments = given
        result = getattr(self.learners[key], verb)(*arguments)
        return result if dist.get_rank() == 0 else None

    def build_sampler(self, given: tuple[str, LearnerConfig, int]) -> None:
        """Keep a sampler under a key; it has no weights yet."""
        key, config, max_rows = given
        self._samplers[key] = LocalSampler(config, max_rows)

    def sync_weights(self, given: tuple[str, str]) -> None:
        """Give a sampler the weights of a policy now."""
        sampler, learner = given
        self._samplers[sampler].sync_weights(self.learners[learner].full_weights())

    def sample(self, given: tuple[Any, ...]) -> Any:
        """Draw this process's share of the completions."""
        key, *arguments = given
        return self._samplers[key].sample(*arguments)

    def drop(self, given: tuple[str]) -> None:
        """Forget a learner or a sampler."""
        self.learners.pop(given[0], None)
        self._samplers.pop(given[0], None)
