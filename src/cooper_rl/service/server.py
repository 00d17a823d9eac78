"""The process of `cooper serve`, and the checks before a request is handled: token, size of the body, load."""

import asyncio
import base64
import binascii
import hmac
import logging
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import uvicorn
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cooper_rl.engines.local.device import set_threads
from cooper_rl.persist.folder_lock import stop_on_signal
from cooper_rl.service.app import Service, build_app, refused
from cooper_rl.service.config import ServeConfig, ServerConfig
from cooper_rl.service.history import History, RememberingAssistant
from cooper_rl.service.training import Refusal, Training
from cooper_rl.service.worker import Meters, Worker
from cooper_rl.stage2.cooper_reward import CooperReward
from cooper_rl.stage2.reward_config import RewardInputs

logger = logging.getLogger(__name__)

OPEN = frozenset({"/healthz", "/readyz", "/docs", "/openapi.json"})
"""Paths that need no token; they reveal nothing about the training."""
MEGABYTE = 1e6
READ_S = 60
"""Seconds for a client to send its body, so that slow clients do not block others."""
GRACE_S = 30
"""Seconds for requests under way after a signal."""


class RequestGate:
    """ASGI middleware. Bodies are measured while they are read and never held beyond the limits."""

    def __init__(self, app: ASGIApp, config: ServerConfig, token: str | None, meters: Meters) -> None:
        self._app, self._config, self._token, self._requests = app, config, token, meters.requests
        self._pending = self._bytes = 0
        meters.pending.set_function(lambda: self._pending)
        meters.pending_bytes.set_function(lambda: self._bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = scope.get("route")  # of unknown paths nobody keeps a count each
                path = route.path if route is not None else "refused"
                self._requests.labels(scope["method"], path, message["status"]).inc()
            await send(message)

        try:
            self._check_token(scope)
            await (self._with_body if scope["method"] == "POST" else self._app)(scope, receive, counted)
        except Refusal as error:
            await refused(error)(scope, receive, counted)

    async def _with_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._pending >= self._config.max_pending:
            raise _busy(f"{self._pending} requests are under way")
        self._pending += 1
        body = bytearray()
        try:
            if (announced := Headers(scope=scope).get("content-length", "0")).isdecimal():
                self._check_size(int(announced))
            try:
                async with asyncio.timeout(READ_S):
                    await self._read(receive, body)
            except TimeoutError as error:
                raise Refusal(408, f"the body did not arrive within {READ_S} seconds") from error
            await self._app(scope, _replay(bytes(body), receive), send)
        finally:
            self._pending -= 1
            self._bytes -= len(body)

    async def _read(self, receive: Receive, body: bytearray) -> None:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "the connection ended before the body did")
            chunk = message.get("body", b"")
            body.extend(chunk)
            self._bytes += len(chunk)
            self._check_size(len(body))
            if self._bytes > self._config.max_pending_mb * MEGABYTE:
                raise _busy("the bodies of requests under way exceed serve.max_pending_mb")
            more = message.get("more_body", False)

    def _check_size(self, size: int) -> None:
        limit = self._config.max_body_mb
        if size > limit * MEGABYTE:
            raise Refusal(413, f"the body is larger than {limit:g} MB (serve.max_body_mb); send fewer groups")

    def _check_token(self, scope: Scope) -> None:
        if self._token is None or scope["path"] in OPEN:
            return
        given = _given_token(Headers(scope=scope).get("authorization", "").encode("latin-1"))
        if not hmac.compare_digest(given, self._token.encode()):
            how = "set COOPER_TOKEN for RewardClient, or send Authorization: Bearer TOKEN or a password in the URL"
            raise Refusal(401, f"the token is missing or wrong; {how}", {"WWW-Authenticate": "Bearer"})


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body again, in one piece."""
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return whole.pop() if whole else await receive()

    return replay


def _given_token(header: bytes) -> bytes:
    """From `Bearer TOKEN`, or the password of `Basic …`, which trainers can put into a URL."""
    kind, _, value = header.partition(b" ")
    if kind.lower() == b"bearer":
        return value.strip()
    with suppress(binascii.Error):
        if kind.lower() == b"basic":
            return base64.b64decode(value, validate=True).partition(b":")[2]
    return b""


def _busy(why: str) -> Refusal:
    return Refusal(429, f"the server is busy: {why}; send the request again in a second", {"Retry-After": "1"})


def serve(config: ServeConfig, inputs: RewardInputs, token: str | None, listener: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT, then write a checkpoint. Raises InputError for an unfit folder or model."""
    set_threads(config.threads)
    history = History(Path(config.serve.folder), config.serve.checkpoints)
    assistant = RememberingAssistant(inputs.assistant) if inputs.assistant is not None else None
    reward = CooperReward.from_config(config, inputs=replace(inputs, assistant=assistant))
    training = Training(reward, history, assistant, config.serve.max_step_rows)
    meters = Meters(training)
    worker = Worker(training, config.serve, meters)
    service = Service(config, worker, meters)
    gate = RequestGate(build_app(service), config.serve, token, meters)
    settings = uvicorn.Config(
        gate, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=GRACE_S, backlog=1024
    )
    server = uvicorn.Server(settings)

    def stop() -> None:
        service.stopping = server.should_exit = True

    server.capture_signals = lambda: stop_on_signal(stop)  # uvicorn's own handlers raise the signal again at the end
    listener.listen(settings.backlog)  # so that whoever reads the next line can connect
    host, port = listener.getsockname()[:2]
    logger.info("serving on http://%s:%d", f"[{host}]" if ":" in host else host, port)
    try:
        server.run([listener])
    finally:
        worker.stop()
