"""The processes that share a model: on reserved devices, as a group seen from the driver, and one from inside."""

import logging
import os
import socket
import sys
import time
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any

import ray
import torch
import torch.distributed as dist
from ray.exceptions import GetTimeoutError, ObjectStoreFullError, OutOfDiskError, RayError, RayTaskError
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from torch import Tensor
from transformers import PreTrainedModel

from cooper_rl.engines.base import EngineLost
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.cpu import use_fast_linear
from cooper_rl.engines.fsdp2.learners import ShardedLearner, ShardedPolicyLearner, ShardedRewardModelLearner
from cooper_rl.engines.fsdp2.sharding import rank_device
from cooper_rl.engines.local.device import set_threads
from cooper_rl.engines.local.models import load_policy, load_tokenizer
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.engines.ray.samplers import Resources
from cooper_rl.errors import InputError
from cooper_rl.rollouts import Samples

GRACE_S = 90.0
"""Seconds that the others get after an error in one process: they may wait for it in a collective, or one may be dead.
Ray reports a dead process at once, but a lost machine only after a minute."""
_FULL = (ObjectStoreFullError, OutOfDiskError)
LEARNERS: dict[str, Any] = {"policy": ShardedPolicyLearner, "reward_model": ShardedRewardModelLearner}


class RankGroup:
    """The processes that share a model: alive together or not at all. They get the same calls in the same order."""

    def __init__(
        self, name: str, ranks: int, each: Resources, logs: Path, start_timeout_s: float, call_timeout_s: float
    ) -> None:
        """Reserve devices, and begin to start the processes. Raises InputError where no devices are free in time."""
        self.name = name
        self._start_timeout_s, self._call_timeout_s = start_timeout_s, call_timeout_s
        self._lock = Lock()
        self._keys = 0
        self._forgotten: deque[str] = deque()
        self._placement = Placement(name, ranks, each, start_timeout_s)
        self.actors: list[Any] = [
            self._placement.start(RankProcess, i, str(logs / f"{name}-{i}.log"), max(1, int(each.cpus)), sys.path)
            for i in range(ranks)
        ]

    def join(self) -> None:
        """Wait until the processes have started and form a process group."""
        (address,) = _results(self.name, [self.actors[0].address.remote()], self._start_timeout_s)
        joining = [
            actor.join.remote(address, rank, len(self.actors), 2 * self._call_timeout_s)  # this side gives up first
            for rank, actor in enumerate(self.actors)
        ]
        _results(self.name, joining, self._start_timeout_s)

    def new_key(self) -> str:
        """A name for one more learner or sampler in these processes."""
        with self._lock:
            self._keys += 1
            return f"{self.name}-{self._keys}"

    def call(self, verb: str, *arguments: Any) -> list[Any]:
        """Call a verb of every process; returns the result of each.

        Arguments go to each machine once. Raises what the verb raises, and EngineLost for a dead or silent process.
        """
        try:
            given = ray.put(arguments)
        except _FULL as error:
            raise EngineLost(_no_room(self.name)) from error
        with self._lock:  # two threads must not reach two processes in different orders
            while self._forgotten:
                key = self._forgotten.popleft()
                for actor in self.actors:
                    actor.drop.remote((key,))
            references = [getattr(actor, verb).remote(given) for actor in self.actors]
        return _results(self.name, references, self._call_timeout_s)

    def forget(self, key: str) -> None:
        """Drop the learner or sampler of a key at the next call of the processes; garbage collection may call this."""
        self._forgotten.append(key)

    def close(self) -> None:
        """End the processes and free their devices."""
        for actor in self.actors:
            ray.kill(actor)
        self._placement.release()


def _results(group: str, references: list[Any], timeout_s: float) -> list[Any]:
    """The results of all processes, in order. Raises as `RankGroup.call`."""
    waiting, failure, deadline = list(references), None, time.monotonic() + timeout_s
    while waiting:
        done, waiting = ray.wait(waiting, timeout=max(0.0, deadline - time.monotonic()))
        if not done:
            break
        try:
            ray.get(done[0])
        except RayTaskError as error:
            failure, deadline = failure or error, min(deadline, time.monotonic() + GRACE_S)
        except RayError as error:  # it died, or Ray has ended it where memory was short
            reason = str(error).strip().splitlines()
            raise EngineLost(f"a process of {group} is dead ({reason[0]} {reason[-1]})") from error
    if failure is not None and isinstance(failure.cause, _FULL):
        raise EngineLost(_no_room(group)) from failure
    if failure is not None:
        raise failure.cause from failure
    if waiting:
        raise EngineLost(f"a process of {group} has not answered for {timeout_s:g} s (call_timeout_s)")
    return ray.get(references)


def _no_room(group: str) -> str:
    return (
        f"Ray's object store is full, and so is the disk that it spills to; a call to {group} does not fit. Make room "
        "below Ray's temporary folder, or start Ray with more --object-store-memory"
    )


class Placement:
    """One bundle of devices for each process of a group; `release` frees them all."""

    def __init__(self, name: str, count: int, each: Resources, timeout_s: float) -> None:
        """Raises InputError where no devices are free in time."""
        self._each = each
        bundle = {"CPU": each.cpus} | ({"GPU": each.gpus} if each.gpus else {})
        self._group = placement_group([bundle] * count, strategy="PACK")
        try:
            ray.get(self._group.ready(), timeout=timeout_s)
        except GetTimeoutError as error:
            self.release()
            raise InputError(
                f"engine: the devices of {name} are taken by others; none were free within {timeout_s:g} s "
                "(start_timeout_s)"
            ) from error

    def start(self, actor: type, index: int, *arguments: Any) -> Any:
        """Begin to start an actor on a bundle. Ray does not restart it when it dies."""
        return (
            ray.remote(actor)
            .options(
                num_cpus=self._each.cpus,
                num_gpus=self._each.gpus,
                max_restarts=0,
                scheduling_strategy=PlacementGroupSchedulingStrategy(self._group, index),
            )
            .remote(*arguments)
        )

    def release(self) -> None:
        """Free the devices, which ends the processes that still use them."""
        remove_placement_group(self._group)


def begin_process(log: str, threads: int, path: list[str]) -> None:
    """Have this process print and log to the file `log`, and import from `path`, the driver's `sys.path`, too."""
    sys.path.extend(place for place in path if place not in sys.path)  # a loss may be a user's own
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", force=True)
    set_threads(threads)


class RankProcess:
    """A Ray actor: shards of learners, and a copy of the policy to sample from. It decides nothing.

    Verbs take their arguments as one tuple, which Ray brings to each machine once.
    """

    def __init__(self, log: str, threads: int, path: list[str]) -> None:
        begin_process(log, threads, path)
        self.learners: dict[str, ShardedLearner] = {}
        self._samplers: dict[str, RankSampler] = {}

    def address(self) -> str:
        """This machine and a free port, where the process group may form."""
        host = ray.util.get_node_ip_address()
        with socket.socket() as free:
            free.bind((host, 0))
            return f"tcp://{host}:{free.getsockname()[1]}"

    def join(self, address: str, rank: int, ranks: int, timeout_s: float) -> None:
        """Form the process group."""
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(
            backend, init_method=address, rank=rank, world_size=ranks, timeout=timedelta(seconds=timeout_s)
        )

    def build_learner(self, given: tuple[str, str, LearnerConfig, int, bool]) -> None:
        """Load a learner of a kind and keep it under a key."""
        key, kind, config, total_steps, trainable = given
        self.learners[key] = LEARNERS[kind].from_config(config, total_steps, trainable)

    def learner(self, given: tuple[str, str, tuple[Any, ...]]) -> Any:
        """Call a verb of the learner with this key. Only the first process returns the result."""
        key, verb, arguments = given
        result = getattr(self.learners[key], verb)(*arguments)
        return result if dist.get_rank() == 0 else None

    def build_sampler(self, given: tuple[str, LearnerConfig, int]) -> None:
        """Keep a sampler under a key; it has no weights yet."""
        key, config, max_rows = given
        self._samplers[key] = RankSampler(config, max_rows)

    def sync_weights(self, given: tuple[str, str]) -> None:
        """Copy the weights of a policy into a sampler."""
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


class RankSampler:
    """The sampler in one process of the policy, with a copy of the whole model.

    It draws for its share of the prompts what the native sampler would draw for them among all prompts.
    """

    def __init__(self, config: LearnerConfig, max_rows: int) -> None:
        self._config = config
        self._native = NativeSampler(load_tokenizer(config.model), max_rows=max_rows, autocast=config.autocast)
        self._model: PreTrainedModel | None = None

    @torch.no_grad()
    def sync_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Copy the weights, one after the other."""
        if self._model is None:
            self._model = load_policy(self._config.model)
            self._model.to(rank_device(self._config.device))  # pyright: ignore[reportArgumentType]
            use_fast_linear(self._model, self._config.cpu_kernels)
            self._native.sample_from(self._model)
        own = dict(self._model.state_dict(keep_vars=True))
        for name, tensor in weights:
            own[name].copy_(tensor)

    def sample(self, prompts: Sequence[Sequence[int]], n: int, params: SamplingParams, seed: int) -> Samples:
        """The completions of this process's share, an even run of the prompts."""
        rank, ranks = dist.get_rank(), dist.get_world_size()
        share = range(len(prompts) * rank // ranks, len(prompts) * (rank + 1) // ranks)
        return self._native.sample(prompts, n, params, seed, share)
