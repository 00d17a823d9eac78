"""Learners and samplers in other processes, which share a model: Ray actors, and the driver's side without tensors."""

import logging
import os
import socket
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

import numpy as np
import ray
import torch
import torch.distributed as dist
from jaxtyping import Float
from ray.exceptions import GetTimeoutError, ObjectStoreFullError, OutOfDiskError, RayError, RayTaskError
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from torch import Tensor

from cooper_base.errors import EngineLost, InputError
from cooper_base.files.durable import opened
from cooper_rl.engines.base import (
    Learner,
    Lengths,
    Metrics,
    PerToken,
    PolicyLearner,
    Prompts,
    RewardModelLearner,
    Sampler,
)
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.cpu import use_fast_linear
from cooper_rl.engines.local.adapter import add_adapter
from cooper_rl.engines.local.device import set_threads
from cooper_rl.engines.local.models import load_policy, load_tokenizer
from cooper_rl.engines.local.sampler import NativeSampler, to_sample
from cooper_rl.engines.scale.fsdp2 import OpenSender, ShardedPolicyLearner, ShardedRewardModelLearner, rank_device
from cooper_rl.engines.scale.ray.config import Resources
from cooper_rl.records import Column, Samples

START_TIMEOUT_S = 300.0
"""Seconds to wait for free devices and for the processes to start."""
CALL_TIMEOUT_S = 3600.0
"""Seconds without an answer after which a process counts as dead. Ray tells of a death at once: this is for one that
hangs, and is longer than any part of a step, because a call that takes longer would end the run."""


class Actors:
    """Ray actors of one class, each with its own devices. Ray does not restart an actor that dies."""

    grace_s = 0.0  # that the others get after an error in one, before it is raised

    def __init__(self, actor: type, devices: str, who: str, number: int, each: Resources, log: Path):
        """Reserve the devices. `who` is the actor's name in messages, with {} for its number. Raises InputError if no
        devices are free."""
        self.actors: list[Any] = [None] * number
        self._actor, self._who, self._each, self._log = actor, who, each, log
        bundle = {"CPU": each.cpus} | ({"GPU": each.gpus} if each.gpus else {})
        self._placement = placement_group([bundle] * number, strategy="PACK")
        try:
            ray.get(self._placement.ready(), timeout=START_TIMEOUT_S)
        except GetTimeoutError as error:
            self.close()
            raise InputError(
                f"engine: the devices of {devices} are taken by others; none were free within {START_TIMEOUT_S:g} s"
            ) from error

    def launch(self, number: int) -> None:
        if self.actors[number] is not None:
            ray.kill(self.actors[number])
        start = ray.remote(self._actor).options(
            num_cpus=self._each.cpus,
            num_gpus=self._each.gpus,
            max_restarts=0,
            scheduling_strategy=PlacementGroupSchedulingStrategy(self._placement, number),
        )
        self.actors[number] = start.remote(f"{self._log}-{number}.log", max(1, int(self._each.cpus)), sys.path)

    def results(self, calls: Mapping[int, Any], timeout_s: float, settle: bool = False) -> list[Any]:
        """Wait for the results of calls to actors, by number; with `settle`, wait for all of them before the first
        error is raised. Raises that error, or EngineLost for an actor that is dead, or that gave no answer for
        `timeout_s` and was killed.
        """
        waiting, failure, deadline = list(calls.values()), None, time.monotonic() + timeout_s
        if settle:
            ray.wait(waiting, num_returns=len(waiting), timeout=timeout_s)
        while waiting:
            done, waiting = ray.wait(waiting, timeout=max(0.0, deadline - time.monotonic()))
            if not done:
                break
            try:
                ray.get(done[0])
            except RayTaskError as error:
                failure, deadline = failure or error, min(deadline, time.monotonic() + self.grace_s)
            except RayError as error:  # it died, or Ray has ended it where memory was short
                reason = str(error).strip().splitlines()
                dead = next(number for number, call in calls.items() if call == done[0])
                raise EngineLost(f"{self._who.format(dead)} is dead ({reason[0]} {reason[-1]})") from error
        if failure is not None:
            raise failure.cause from failure
        if silent := [number for number, call in calls.items() if call in waiting]:
            for number in silent:
                ray.kill(self.actors[number])
            who = self._who.format(", ".join(map(str, silent)))
            raise EngineLost(f"{who} has not answered for {timeout_s:g} s")
        return ray.get(list(calls.values()))

    def close(self) -> None:
        for actor in self.actors:
            if actor is not None:
                ray.kill(actor)
        remove_placement_group(self._placement)


class RankGroup(Actors):
    """The processes that share one model. If one is lost, all are. They get the same calls in the same order."""

    grace_s = 90.0  # they may wait for it in a collective; Ray reports a lost machine only after a minute

    def __init__(self, name: str, ranks: int, each: Resources, logs: Path):
        super().__init__(RankProcess, name, f"a process of {name}", ranks, each, logs / name)
        self.name = name
        self._lock, self._keys = Lock(), count(1)
        self._forgotten: deque[str] = deque()
        for rank in range(ranks):
            self.launch(rank)

    def join(self) -> None:
        (address,) = self.results({0: self.actors[0].address.remote()}, START_TIMEOUT_S)
        given = (address, len(self.actors), 2 * CALL_TIMEOUT_S)  # so that this side times out first
        joining = {rank: actor.join.remote(rank, *given) for rank, actor in enumerate(self.actors)}
        self.results(joining, START_TIMEOUT_S)

    def build(self, owner: object, make: Callable[..., Any], *arguments: Any) -> str:
        """Build a part in every process and keep it as long as `owner` lives. Returns the part's key."""
        key = f"{self.name}-{next(self._keys)}"
        self.call("build", key, make, *arguments)
        weakref.finalize(owner, self._forgotten.append, key)  # dropped at the next call
        return key

    def call(self, verb: str, *arguments: Any) -> list[Any]:
        """Call a method of every process. Returns the result of each. Raises what they raise, and EngineLost."""
        try:
            given = ray.put(arguments)
            with self._lock:  # two threads must not reach two processes in different orders
                while self._forgotten:
                    key = self._forgotten.popleft()
                    for actor in self.actors:
                        actor.call.remote("drop", (key,))
                calls = {rank: actor.call.remote(verb, given) for rank, actor in enumerate(self.actors)}
            return self.results(calls, CALL_TIMEOUT_S)
        except (ObjectStoreFullError, OutOfDiskError) as error:
            raise EngineLost(
                f"Ray's object store is full, and so is the disk that it spills to; a call to {self.name} does not "
                "fit. Make room below Ray's temporary folder, or start Ray with more --object-store-memory"
            ) from error


def begin_process(log: str, threads: int, path: list[str]) -> None:
    """Send what this process prints and logs to the file `log`, and add the driver's `sys.path` (`path`) to this
    one's."""
    sys.path.extend(place for place in path if place not in sys.path)  # a loss may be a user's own
    file = opened(Path(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", force=True)
    set_threads(threads)


class RankProcess:
    """A Ray actor: shards of learners, and a copy of the policy to sample from. It decides nothing."""

    def __init__(self, log: str, threads: int, path: list[str]) -> None:
        begin_process(log, threads, path)
        self.parts: dict[str, Any] = {}  # sharded learners and samplers by key

    def address(self) -> str:
        """This machine and a free port, where the process group may form."""
        host = ray.util.get_node_ip_address()
        with socket.socket() as free:
            free.bind((host, 0))
            return f"tcp://{host}:{free.getsockname()[1]}"

    def join(self, rank: int, address: str, ranks: int, timeout_s: float) -> None:
        backend, timeout = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timedelta(seconds=timeout_s)
        dist.init_process_group(backend, init_method=address, rank=rank, world_size=ranks, timeout=timeout)

    def call(self, verb: str, given: tuple[Any, ...]) -> Any:
        """Call one of the verbs below; Ray brings `given`, their arguments, to each machine once."""
        return getattr(self, verb)(*given)

    def build(self, key: str, make: Callable[..., Any], *arguments: Any) -> None:
        self.parts[key] = make(*arguments)

    def drop(self, key: str, *_: Any) -> None:
        self.parts.pop(key, None)

    def learner(self, key: str, verb: str, *arguments: Any) -> Any:
        """Call a verb of the learner with this key. Only the first process returns the result."""
        result = getattr(self.parts[key], verb)(*arguments)
        return result if dist.get_rank() == 0 else None

    def sync_weights(self, sampler: str, learner: str) -> None:
        self.parts[sampler].sync_weights(self.parts[learner])

    def sample(self, key: str, *arguments: Any) -> Samples:
        return self.parts[key].sample(*arguments)


class RankSampler(NativeSampler):
    def __init__(self, config: LearnerConfig, max_rows: int) -> None:
        super().__init__(load_tokenizer(config.model), max_rows=max_rows, autocast=config.autocast)
        self._config = config

    @torch.no_grad()
    def sync_weights(self, learner: Any) -> None:
        lora = self._config.lora if learner.adapted else None  # then the adapter alone is sent
        if self._model is None:
            model = load_policy(self._config.model)
            if lora is not None:
                add_adapter(model, lora, self._config.model)
            self._model = to_sample(model, rank_device(self._config.device), self._autocast)
            use_fast_linear(self._model)
        own = self._model.state_dict(keep_vars=True)
        for name, tensor in learner.full_weights() if lora is None else learner.adapter_weights():
            own[name].copy_(tensor)

    def sample(self, prompts: Prompts, n: int, params: SamplingParams, seed: int, *_: Any) -> Samples:
        """The completions that the native sampler draws for this process's share of the prompts, which are
        consecutive."""
        rank, ranks = dist.get_rank(), dist.get_world_size()
        share = range(len(prompts) * rank // ranks, len(prompts) * (rank + 1) // ranks)
        return super().sample(prompts, n, params, seed, share)


class RemoteLearner(Learner):
    sharded: ClassVar[Any]  # the class in each process

    def __init__(self, group: RankGroup, config: LearnerConfig, total_steps: int, trainable: bool) -> None:
        self.config, self.group = config, group
        self.version = 0  # changes with the weights
        self.key = group.build(self, self.sharded.from_config, config, total_steps, trainable)

    def forward_backward(self, batch: Any, loss: Any) -> Metrics:
        return self._call("forward_backward", batch, loss)

    def optim_step(self) -> Metrics:
        self.version += 1
        return self._call("optim_step")

    def set_learning_rate(self, peak: float) -> None:
        self._call("set_learning_rate", peak)

    def describe(self) -> str:
        return self._call("describe")

    def save(self, directory: Path) -> None:
        """See `Learner`. All processes write, so all machines must see the folder's disk."""
        self._call("save", Path(directory).absolute())

    def load(self, directory: Path) -> None:
        self.version += 1
        self._call("load", Path(directory).absolute())

    def _call(self, verb: str, *arguments: Any) -> Any:
        return self.group.call("learner", self.key, verb, *arguments)[0]


class RemotePolicyLearner(RemoteLearner, PolicyLearner):
    """A causal language model; implements `PolicyLearner`, and `WeightSender` once it is connected."""

    sharded = ShardedPolicyLearner

    def logprobs(self, token_ids: Column, lengths: Lengths, temperature: float = 1.0, adapter: bool = True) -> PerToken:
        return np.array(self._call("logprobs", token_ids, lengths, temperature, adapter))  # Ray's own are read-only

    def connect(self, open_sender: OpenSender) -> None:
        """Open every process's side of a weight transfer to samplers elsewhere. `open_sender` is pickled."""
        self._call("connect", open_sender)

    def sync_weights(self, version: str) -> None:
        """See `WeightSender`. Raises RuntimeError before `connect`."""
        self._call("sync_weights", version)

    def disconnect(self) -> None: ...  # the processes leave the transfer when the next one is opened


class RemoteRewardModelLearner(RemoteLearner, RewardModelLearner):
    sharded = ShardedRewardModelLearner

    def score(self, token_ids: list[list[int]]) -> Float[Tensor, " B"]:
        return torch.from_numpy(np.array(self._call("score", token_ids)))


class RemoteSampler(Sampler):
    """Native samplers in the policy's processes. Each has a copy of all weights and samples for some of the prompts."""

    def __init__(self, group: RankGroup, policy: LearnerConfig, max_rows: int) -> None:
        self._group, self._key = group, group.build(self, RankSampler, policy, max_rows)
        self._synced: tuple[str, int] | None = None

    def sync_weights(self, learner: PolicyLearner) -> None:
        """See `Sampler`. Raises TypeError for a learner of other processes."""
        if not isinstance(learner, RemotePolicyLearner) or learner.group is not self._group:
            raise TypeError(
                f"this sampler takes the weights of a policy learner of its own processes, not of {learner!r}"
            )
        if self._synced != (wanted := (learner.key, learner.version)):
            self._group.call("sync_weights", self._key, learner.key)
            self._synced = wanted

    def sample(self, prompts: Prompts, n: int, params: SamplingParams, seed: int) -> Samples:
        if self._synced is None:
            raise RuntimeError("no weights to sample with: call sync_weights first")
        parts: list[Samples] = self._group.call("sample", self._key, list(prompts), n, params, seed)
        return Samples(
            token_ids=Column.of([row for part in parts for row in part.token_ids]),
            logprobs=np.concatenate([part.logprobs for part in parts]),
            stopped=np.concatenate([part.stopped for part in parts]),
            texts=[text for part in parts for text in part.texts],
        )
