"""vLLM engines under Ray: the process of one, all of them behind one call, and the connection to a sharded policy."""

from __future__ import annotations

import logging
import socket
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
import torch
from ray.exceptions import RayError, RayTaskError
from transformers import PreTrainedModel

from cooper_rl.engines.base import EngineLost, PolicyLearner, WeightSender
from cooper_rl.engines.ray.learners import RemotePolicyLearner
from cooper_rl.engines.ray.ranks import Placement, begin_process
from cooper_rl.engines.ray.samplers import Resources
from cooper_rl.engines.vllm import VllmConfig, check_version
from cooper_rl.engines.vllm.engines import CompletionRequest, DrawnCompletion, OfflineEngine, RemoteEngine
from cooper_rl.errors import InputError

if TYPE_CHECKING:
    from cooper_rl.engines.vllm.transfer import Receiver  # imports vLLM

logger = logging.getLogger(__name__)


class EngineProcess:
    """A Ray actor with one vLLM engine. It decides nothing, and all its state comes back with a push of weights."""

    def __init__(self, log: str, threads: int, path: list[str]) -> None:
        begin_process(log, threads, path)
        self._engine: Any = None

    def start(self, model: str, config: VllmConfig, backend: str, version: str) -> tuple[int, torch.dtype]:
        """Load the model; returns the engine's context and the dtype of its weights.

        `version` is that of the driver's vLLM. Raises MissingExtraError where this machine has no vLLM, and InputError
        where it has another version: both sides of a transfer have to be the same.
        """
        check_same(check_version(), version)
        self._engine = OfflineEngine(model, config, backend)
        return self._engine.context, self._engine.dtype

    def call(self, verb: str, *arguments: Any) -> Any:
        """Call a method of the engine."""
        return getattr(self._engine, verb)(*arguments)


def check_same(here: str, driver: str) -> None:
    """Raises InputError where this machine's vLLM is not the driver's version."""
    if here != driver:
        raise InputError(
            f"engine: vLLM is {here} on {socket.gethostname()} and {driver} where the run was started; install the "
            "same version on all machines"
        )


class RayEngines:
    """The vLLM engines of a run behind one call (`InferenceEngine`): started, asked to draw, replaced when lost."""

    elsewhere = True
    context: int = 0
    """See `InferenceEngine`; set by `start`."""
    dtype: torch.dtype = torch.float32
    """See `InferenceEngine`; set by `start`."""

    def __init__(self, count: int, each: Resources, logs: Path, start_timeout_s: float, call_timeout_s: float) -> None:
        """Reserve devices. Raises InputError where none are free in time."""
        self.restarts = 0
        self._count, self._each, self._logs, self._call_timeout_s = count, each, logs, call_timeout_s
        self._placement = Placement("the vLLM engines", count, each, start_timeout_s)
        self._given: tuple[str, VllmConfig, str] | None = None
        self._actors: dict[int, Any] = {}

    def start(self, model: str, config: VllmConfig, backend: str) -> None:
        """Have every engine load the model, unless it has. Raises InputError where a machine's vLLM does not serve."""
        wanted = (model, config, backend)
        if self._given != wanted:
            self._given = None  # until all have it
            self._start(range(self._count), wanted)
            self._given = wanted

    def receiver(self) -> EngineActors:
        """The present engines, for a sender of weights; picklable."""
        assert self._given is not None
        _, config, _ = self._given
        actors = [self._actors[i] for i in range(self._count)]
        return EngineActors(actors, self.dtype, config.tensor_parallel, config.timeout_s)

    def generate(self, requests: list[CompletionRequest]) -> list[DrawnCompletion]:
        """See `InferenceEngine`. One engine draws all samples of a prompt."""
        each = [(share,) for share in prompt_shares(requests, self._count)]
        drawn = self.receiver().call("generate", each, self._call_timeout_s, settle=True)
        return [one for part in drawn for one in part]

    def weight_versions(self) -> list[str]:
        return self.receiver().weight_versions()

    def wait_until_back(self) -> None:
        """Replace engines that are dead or silent. Raises EngineLost where that fails."""
        if lost := self.receiver().lost():
            logger.error("VLLM ENGINE LOST, another one is started: %s", ", ".join(map(str, lost)))
            self.restarts += len(lost)
            assert self._given is not None
            self._start(lost, self._given)

    def close(self) -> None:
        """End the processes and free their devices."""
        for actor in self._actors.values():
            ray.kill(actor)
        self._placement.release()

    def _start(self, numbers: Iterable[int], given: tuple[str, VllmConfig, str]) -> None:
        numbers = list(numbers)
        threads = max(1, int(self._each.cpus))
        for i in numbers:
            if i in self._actors:
                ray.kill(self._actors[i])
            log = str(self._logs / f"engine-{i}.log")
            self._actors[i] = self._placement.start(EngineProcess, i, log, threads, sys.path)
        actors = [self._actors[i] for i in numbers]
        version = check_version()
        calls = [actor.start.remote(*given, version) for actor in actors]
        self.context, self.dtype = _results(calls, actors, self._call_timeout_s)[0]


def prompt_shares(requests: list[CompletionRequest], engines: int) -> list[list[CompletionRequest]]:
    """Divide requests into even runs of prompts, one for each engine, with all requests of a prompt in one run."""
    groups = [list(same) for _, same in groupby(requests, key=lambda request: request.prompt)]
    runs = [groups[len(groups) * i // engines : len(groups) * (i + 1) // engines] for i in range(engines)]
    return [[request for group in run for request in group] for run in runs]


class EngineActors:
    """The engines as a sender of weights sees them (`Receiver`). Every call may raise EngineLost.

    An engine that is silent for `timeout_s` is killed, to free its devices for another.
    """

    def __init__(self, actors: Sequence[Any], dtype: torch.dtype, tensor_parallel: int, timeout_s: float) -> None:
        self.actors, self.dtype = list(actors), dtype
        self.workers = len(actors) * tensor_parallel
        self._tensor_parallel, self._timeout_s = tensor_parallel, timeout_s

    def control(self, verb: str, arguments: Mapping[str, Any]) -> None:
        """See `Receiver`. The ranks of each engine's workers follow those of the engine before."""
        each = [arguments] * len(self.actors)
        if verb == "init_weight_transfer_engine":
            info = arguments["init_info"]
            offsets = range(info["rank_offset"], info["rank_offset"] + self.workers, self._tensor_parallel)
            each = [{"init_info": {**info, "rank_offset": offset}} for offset in offsets]
        self.call("control", [(verb, given) for given in each])

    def weight_versions(self) -> list[str]:
        return [version for versions in self.call("weight_versions") for version in versions]

    def reset_prefix_cache(self) -> None:
        self.call("reset_prefix_cache")

    def lost(self) -> list[int]:
        """The numbers of the engines that are dead or do not answer."""
        asked = [actor.call.remote("weight_versions") for actor in self.actors]
        answered, _ = ray.wait(asked, num_returns=len(asked), timeout=self._timeout_s)
        return [i for i, reference in enumerate(asked) if reference not in answered or _is_dead(reference)]

    def call(
        self,
        verb: str,
        each: Sequence[tuple[Any, ...]] | None = None,
        timeout_s: float | None = None,
        settle: bool = False,
    ) -> list[Any]:
        """Call a method of every engine, with the engine's own arguments if there are any; the result of each.

        Raises the first error as it comes, because in a transfer the other engines may wait for the one that failed.
        With `settle` it raises only when the other engines are done too, and answer again.
        """
        given = each or [()] * len(self.actors)
        calls = [actor.call.remote(verb, *arguments) for actor, arguments in zip(self.actors, given, strict=True)]
        return _results(calls, self.actors, timeout_s or self._timeout_s, settle)


def _results(calls: Sequence[Any], actors: Sequence[Any], timeout_s: float, settle: bool = False) -> list[Any]:
    """Wait for the results of the actors' calls.

    Raises the first error as it comes or, with `settle`, when the others are done. Raises EngineLost for an engine that
    is dead, or was killed because it was silent for `timeout_s`.
    """
    waiting, end = list(calls), time.monotonic() + timeout_s
    if settle:
        ray.wait(waiting, num_returns=len(waiting), timeout=timeout_s)
    while waiting:
        done, waiting = ray.wait(waiting, timeout=max(0.0, end - time.monotonic()))
        if not done:
            silent = [i for i, call in enumerate(calls) if call in waiting]
            for i in silent:
                ray.kill(actors[i])
            raise EngineLost(f"vLLM engine {_numbers(silent)} has not answered for {timeout_s:g} s")
        try:
            ray.get(done[0])
        except RayTaskError as error:
            raise error.cause from error
        except RayError as error:  # it died, or Ray has ended it where memory was short
            reason = str(error).strip().splitlines()
            dead = [calls.index(done[0])]
            raise EngineLost(f"vLLM engine {_numbers(dead)} is dead ({reason[0]} {reason[-1]})") from error
    return ray.get(list(calls))


def _numbers(engines: Sequence[int]) -> str:
    return ", ".join(map(str, engines))


def _is_dead(reference: Any) -> bool:
    try:
        ray.get(reference)
    except RayTaskError:
        raise
    except RayError:
        return True
    return False


@dataclass(frozen=True)
class OpenVllmSender:
    """Opens the sender of one of the policy's processes (`OpenSender`); pickled, and called in each of them."""

    receiver: Receiver
    backend: str
    timeout_s: float

    def __call__(self, model: PreTrainedModel, rank: int) -> WeightSender:
        """Weights are gathered one at a time. Raises WeightPushError where the engines cannot be reached."""
        from cooper_rl.engines.vllm.transfer import ModelWeights, VllmWeightSender  # noqa: PLC0415 - imports vLLM

        weights, host = ModelWeights(model, self.receiver.dtype), ray.util.get_node_ip_address()
        return VllmWeightSender(self.backend, weights, self.receiver, rank=rank, host=host, timeout_s=self.timeout_s)


def connect_ranks(
    engine: RayEngines | RemoteEngine, config: VllmConfig, backend: str, learner: PolicyLearner
) -> WeightSender:
    """Connect a policy that is sharded over processes (`Connect`). The driver only says when weights are sent."""
    if not isinstance(learner, RemotePolicyLearner):
        raise TypeError(f"the engines of a cluster take the weights of a sharded policy learner, not {learner!r}")
    receiver = engine.receiver() if isinstance(engine, RayEngines) else engine
    learner.connect(OpenVllmSender(receiver, backend, config.timeout_s))
    return learner
