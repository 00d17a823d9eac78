"""The process of `cooper serve`: load the reward, serve it until a signal, write a checkpoint."""

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import uvicorn

from cooper_rl.engines.local.device import set_threads
from cooper_rl.persist.interrupt import stop_on_signal
from cooper_rl.service.app import build_app
from cooper_rl.service.config import ServeConfig
from cooper_rl.service.gate import Gate
from cooper_rl.service.history import History
from cooper_rl.service.meters import Meters
from cooper_rl.service.rewrites import RememberingAssistant
from cooper_rl.service.service import Service
from cooper_rl.service.training import Training
from cooper_rl.service.worker import Worker
from cooper_rl.stage2.cooper_reward import CooperReward
from cooper_rl.stage2.reward_inputs import RewardInputs

logger = logging.getLogger(__name__)

GRACE_S = 30
"""Seconds for requests under way after a signal."""


def serve(config: ServeConfig, inputs: RewardInputs, token: str | None, listener: socket.socket) -> None:
    """Load or restore the reward and serve it on `listener` until SIGTERM or SIGINT; then write a checkpoint.

    Raises InputError if models or folder do not fit the configuration.
    """
    set_threads(config.threads)
    history = History(Path(config.serve.folder), config.serve.checkpoints)
    assistant = RememberingAssistant(inputs.assistant) if inputs.assistant is not None else None
    reward = CooperReward.from_config(config, inputs=replace(inputs, assistant=assistant))
    training = Training(reward, history, assistant, config.serve.max_step_rows)
    meters = Meters()
    worker = Worker(training, config.serve.batch_rows, config.serve.checkpoint_every, meters)
    service = Service(config, worker, meters)
    gate = Gate(build_app(service), config.serve, token, meters)
    settings = uvicorn.Config(
        gate, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=GRACE_S, backlog=1024
    )
    host, port = listener.getsockname()[:2]
    logger.info("serving on http://%s:%d", f"[{host}]" if ":" in host else host, port)
    try:
        _Server(settings, service).run([listener])
    finally:
        worker.stop()


class _Server(uvicorn.Server):
    """Stops at the first signal, after replying to the requests under way."""

    def __init__(self, settings: uvicorn.Config, service: Service) -> None:
        super().__init__(settings)
        self._service = service

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Replaces uvicorn's handlers, which raise the signal again at the end."""
        with stop_on_signal(self._stop):
            yield

    def _stop(self) -> None:
        self._service.stopping = True
        self.should_exit = True
