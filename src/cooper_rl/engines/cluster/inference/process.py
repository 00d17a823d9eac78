"""The process of one vLLM engine. It decides nothing, and keeps nothing that a push of weights does not bring back."""

import socket
from typing import Any

import torch

from cooper_rl.engines.cluster.process import begin_process
from cooper_rl.engines.vllm.config import VllmConfig, check_version
from cooper_rl.errors import InputError


class EngineProcess:
    """A Ray actor."""

    def __init__(self, log: str, threads: int, path: list[str]) -> None:
        """See `begin_process`."""
        begin_process(log, threads, path)
        self._engine: Any = None

    def start(self, model: str, config: VllmConfig, backend: str, version: str) -> tuple[int, torch.dtype]:
        """Load the model; returns the engine's context and the type of its weights.

        `version` is that of the driver's vLLM. Raises MissingExtraError and InputError where this machine's is missing
        or another one: both sides of a transfer have to be the same.
        """
        check_same(check_version(), version)
        from cooper_rl.engines.vllm.offline import OfflineEngine  # noqa: PLC0415 - starts vLLM

        self._engine = OfflineEngine(model, config, backend)
        return self._engine.context, self._engine.dtype

    def call(self, verb: str, *arguments: Any) -> Any:
        """Call a method of the engine."""
        return getattr(self._engine, verb)(*arguments)


def check_same(here: str, driver: str) -> None:
    """Raises InputError for two versions of vLLM."""
    if here != driver:
        raise InputError(
            f"engine: vLLM is {here} on {socket.gethostname()} and {driver} where the run was started; install the "
            "same version on all machines"
        )
