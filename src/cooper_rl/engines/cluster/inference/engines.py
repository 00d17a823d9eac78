"""The vLLM engines of a run: started, asked to draw, and replaced when they are lost."""

import logging
import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import ray
import torch

from cooper_rl.engines.cluster.inference.actors import EngineActors, results
from cooper_rl.engines.cluster.inference.process import EngineProcess
from cooper_rl.engines.cluster.placement import Placement
from cooper_rl.engines.cluster.resources import Resources
from cooper_rl.engines.vllm.config import VllmConfig, check_version
from cooper_rl.engines.vllm.requests import Drawn, Request

logger = logging.getLogger(__name__)


class Engines:
    """All engines behind one call (`InferenceEngine`)."""

    elsewhere = True
    context: int = 0
    """See `InferenceEngine`; known when they have started."""
    dtype: torch.dtype = torch.float32
    """Of their weights; known when they have started."""

    def __init__(self, count: int, each: Resources, logs: Path, start_timeout_s: float, call_timeout_s: float) -> None:
        """Reserve devices. Raises InputError where none get free in time."""
        self.restarts = 0
        self._count, self._each, self._logs, self._call_timeout_s = count, each, logs, call_timeout_s
        self._placement = Placement("the vLLM engines", count, each, start_timeout_s)
        self._given: tuple[str, VllmConfig, str] | None = None
        self._actors: dict[int, Any] = {}

    def start(self, model: str, config: VllmConfig, backend: str) -> None:
        """Have every engine load a model, unless they have it. Raises InputError where a machine's vLLM is not fit."""
        wanted = (model, config, backend)
        if self._given != wanted:
            self._given = None  # until all have it
            self._start(range(self._count), wanted)
            self._given = wanted

    def receiver(self) -> EngineActors:
        """The engines of now, for a sender of weights; it can be pickled."""
        assert self._given is not None
        _, config, _ = self._given
        actors = [self._actors[i] for i in range(self._count)]
        return EngineActors(actors, config.tensor_parallel, config.timeout_s)

    def generate(self, requests: list[Request]) -> list[Drawn]:
        """See `InferenceEngine`. All samples of a prompt are drawn by one engine."""
        each = [(share,) for share in shares(requests, self._count)]
        drawn = self.receiver().call_and_settle("generate", each, self._call_timeout_s)
        return [one for part in drawn for one in part]

    def weight_versions(self) -> list[str]:
        """See `Receiver`."""
        return self.receiver().weight_versions()

    def wait_until_back(self) -> None:
        """Start others in place of engines that are dead or silent. Raises EngineLost where that fails."""
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
        self.context, self.dtype = results(calls, actors, self._call_timeout_s)[0]


def shares(requests: list[Request], engines: int) -> list[list[Request]]:
    """Even runs of prompts, one for each engine, with all requests of a prompt in one run."""
    groups = [list(same) for _, same in groupby(requests, key=lambda request: request.prompt)]
    runs = [groups[len(groups) * i // engines : len(groups) * (i + 1) // engines] for i in range(engines)]
    return [[request for group in run for request in group] for run in runs]
