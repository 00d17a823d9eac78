"""The process of `cooper serve`."""

import logging
import socket
from dataclasses import replace
from pathlib import Path

import uvicorn

from cooper_base.files.folder_lock import stop_on_signal
from cooper_rl.engines.local.device import set_threads
from cooper_rl.reward.cooper_reward import CooperReward
from cooper_rl.reward.reward_config import RewardInputs
from cooper_rl.service.app import Service, build_app
from cooper_rl.service.config import ServeConfig
from cooper_rl.service.connections import limited
from cooper_rl.service.gate import RequestGate
from cooper_rl.service.history import History, RememberingAssistant
from cooper_rl.service.training import Training
from cooper_rl.service.worker import Meters, Worker
from cooper_verify.faults import FAULTS_FILE, faults_written_to

logger = logging.getLogger(__name__)

CONNECTIONS_PER_SLOT = 4
"""Connections for each request that may be under way: clients keep theirs open between requests."""
GRACE_S = 30
"""Seconds for requests under way after a signal."""
ACCEPTED_AT_ONCE, WAITING = 16, 1024
"""Connections that are accepted before any of them is looked at, and those that wait in the system until then."""


class Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept few connections at once: asyncio accepts as many as its `backlog`, and these would take all
        descriptors before the first is closed. The queue of the system may be longer."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(WAITING)


def serve(config: ServeConfig, inputs: RewardInputs, token: str | None, listener: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT, then write a checkpoint. Raises InputError for an unfit folder or model."""
    set_threads(config.threads)
    history = History(Path(config.serve.folder), config.serve.checkpoints)
    assistant = RememberingAssistant(inputs.assistant) if inputs.assistant is not None else None
    reward = CooperReward.from_config(config, inputs=replace(inputs, assistant=assistant))
    training = Training(reward, history, assistant, config)
    meters = Meters(training)
    worker = Worker(training, config.serve, meters)
    service = Service(config, worker, meters)
    gate = RequestGate(build_app(service), config.serve, token, meters)
    settings = uvicorn.Config(
        gate,
        http=limited(CONNECTIONS_PER_SLOT * config.serve.max_pending),
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=GRACE_S,
        backlog=ACCEPTED_AT_ONCE,
    )
    server = Server(settings)

    def stop() -> None:
        service.stopping = server.should_exit = True

    server.capture_signals = lambda: stop_on_signal(stop)  # uvicorn's own handlers raise the signal again at the end
    listener.listen(WAITING)  # so that whoever reads the next line can connect
    host, port = listener.getsockname()[:2]
    logger.info("serving on http://%s:%d", f"[{host}]" if ":" in host else host, port)
    try:
        with faults_written_to(history.root / FAULTS_FILE):
            server.run([listener])
    finally:
        worker.stop()
