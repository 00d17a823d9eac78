"""vLLM engines under Ray: the process of one, all of them behind one call, and the connection to a sharded policy."""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import ray
import torch
from ray.exceptions import RayError, RayTaskError
from transformers import PreTrainedModel

from cooper_base.errors import InputError
from cooper_rl.engines.base import PolicyLearner, WeightSender
from cooper_rl.engines.scale.ray.ranks import CALL_TIMEOUT_S, Actors, RemotePolicyLearner, begin_process
from cooper_rl.engines.scale.vllm import VllmConfig, check_version
from cooper_rl.engines.scale.vllm.engines import CompletionRequest, DrawnCompletion, InferenceEngine, OfflineEngine

if TYPE_CHECKING:
    from cooper_rl.engines.scale.ray.config import Resources

logger = logging.getLogger(__name__)


class EngineProcess:
    def __init__(self, log: str, threads: int, path: list[str]) -> None:
        begin_process(log, threads, path)
        self._engine: Any = None

    def start(
        self, model: str, config: VllmConfig, backend: str, adapter_rank: int, version: str
    ) -> tuple[int, torch.dtype]:
        """Load the model; returns the engine's context and the dtype of its weights. Raises MissingExtraError where
        this machine has no vLLM, InputError where it is not of the driver's `version`.
        """
        check_same(check_version(), version)
        self._engine = OfflineEngine(model, config, backend, adapter_rank)
        return self._engine.context, self._engine.dtype

    def call(self, verb: str, *arguments: Any) -> Any:
        return getattr(self._engine, verb)(*arguments)


def check_same(here: str, driver: str) -> None:
    if here != driver:
        raise InputError(
            f"engine: vLLM is {here} on {socket.gethostname()} and {driver} where the run was started; install the "
            "same version on all machines"
        )


class RayEngines(Actors, InferenceEngine):
    """The vLLM engines of a run, called as one. Calls may raise EngineLost. A pickled copy goes to the policy's
    processes and stands for the engines that exist at that moment.
    """

    context, workers = 0, 0  # set by `start`, as the type and the rank of adapters are
    dtype: torch.dtype = torch.float32

    def __init__(self, count: int, each: Resources, logs: Path) -> None:
        devices, who, log = "the vLLM engines", "vLLM engine {}", logs / "engine"
        super().__init__(EngineProcess, devices, who, count, each, log)
        self.restarts = 0
        self._given: Any = None  # the arguments of `start` that all engines were started with

    def start(self, model: str, config: VllmConfig, backend: str, adapter_rank: int) -> Self:
        """Load the model in every engine that has not loaded it. Raises InputError if a machine's vLLM cannot serve
        it."""
        wanted = (model, config, backend, adapter_rank)
        if self._given != wanted:
            self._given = None  # until all have it
            self._start(range(len(self.actors)), *wanted)
            self._given = wanted
        self.workers, self.adapter_rank = len(self.actors) * config.tensor_parallel, adapter_rank
        return self

    def _start(self, numbers: Sequence[int], *given: Any) -> None:
        for number in numbers:
            self.launch(number)
        version = check_version()
        calls = {number: self.actors[number].start.remote(*given, version) for number in numbers}
        self.context, self.dtype = self.results(calls, CALL_TIMEOUT_S)[0]

    def generate(self, requests: list[CompletionRequest]) -> list[DrawnCompletion]:
        """See `InferenceEngine`. One engine draws all samples of a prompt."""
        each = [(share,) for share in prompt_shares(requests, len(self.actors))]
        # An engine that still draws would count as lost with one that is dead.
        drawn = self.results(self._calls("generate", each), CALL_TIMEOUT_S, settle=True)
        return [completion for part in drawn for completion in part]

    def wait_until_back(self) -> None:
        """Replace engines that are dead or give no answer. Raises EngineLost if that fails."""
        config = self._given[1]
        calls = self._calls("weight_versions")
        answered, _ = ray.wait(list(calls.values()), num_returns=len(calls), timeout=config.timeout_s)
        if lost := [number for number, call in calls.items() if call not in answered or _is_dead(call)]:
            logger.error("VLLM ENGINE LOST, a new one is being started in its place: %s", ", ".join(map(str, lost)))
            self.restarts += len(lost)
            self._start(lost, *self._given)

    def control(self, verb: str, arguments: Mapping[str, Any]) -> None:
        """See `InferenceEngine`. The ranks of each engine's workers follow those of the engine before."""
        each = [arguments] * len(self.actors)
        if verb == "init_weight_transfer_engine":
            info, step = arguments["init_info"], self.workers // len(self.actors)
            each = [{"init_info": {**info, "rank_offset": info["rank_offset"] + step * i}} for i in range(len(each))]
        self._call("control", [(verb, given) for given in each])

    def weight_versions(self) -> list[str]:
        return [version for versions in self._call("weight_versions") for version in versions]

    def reset_prefix_cache(self) -> None:
        self._call("reset_prefix_cache")

    def load_adapter(self, files: Mapping[str, bytes]) -> None:
        shared = ray.put(dict(files))  # goes to each machine once
        self._call("load_adapter", [(shared,)] * len(self.actors))

    def _call(self, verb: str, each: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        """The results of all engines. The first error is raised at once, because in a transfer the other engines may
        wait for the one that failed."""
        return self.results(self._calls(verb, each), self._given[1].timeout_s)

    def _calls(self, verb: str, each: Sequence[tuple[Any, ...]] | None = None) -> dict[int, Any]:
        given = each or [()] * len(self.actors)
        return {i: actor.call.remote(verb, *given[i]) for i, actor in enumerate(self.actors)}


def prompt_shares(requests: list[CompletionRequest], engines: int) -> list[list[CompletionRequest]]:
    """Divide requests into even runs of prompts, one for each engine."""
    groups = [list(same) for _, same in groupby(requests, key=lambda request: request.prompt)]
    runs = [groups[len(groups) * i // engines : len(groups) * (i + 1) // engines] for i in range(engines)]
    return [[request for group in run for request in group] for run in runs]


def _is_dead(call: Any) -> bool:
    try:
        ray.get(call)
    except RayError as error:
        if isinstance(error, RayTaskError):
            raise
        return True
    return False


def connect_ranks(engine: InferenceEngine, config: VllmConfig, backend: str, learner: PolicyLearner) -> WeightSender:
    """Connect a policy that is sharded over processes (`Connect`). The driver only says when weights are sent."""
    if not isinstance(learner, RemotePolicyLearner):
        raise TypeError(f"the engines of a cluster take the weights of a sharded policy learner, not {learner!r}")
    learner.connect(partial(_open_sender, engine, config, backend))
    return learner


def _open_sender(
    engine: InferenceEngine, config: VllmConfig, backend: str, model: PreTrainedModel, rank: int
) -> WeightSender:
    """Runs in each of the policy's processes (`OpenSender`). Raises WeightPushError if the engines cannot be
    reached."""
    from cooper_rl.engines.scale.vllm.weight_sync import open_sender  # noqa: PLC0415 - imports vLLM

    return open_sender(engine, config, backend, model, rank, host=ray.util.get_node_ip_address())
