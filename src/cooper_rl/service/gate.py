"""Checks before a request is handled: token, size of the body, load."""

import asyncio
import base64
import binascii
import hmac
import json
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cooper_rl.service.config import ServerConfig
from cooper_rl.service.meters import Meters
from cooper_rl.service.refusal import Refusal

OPEN = frozenset({"/healthz", "/readyz", "/docs", "/openapi.json"})
"""Paths that need no token; they reveal nothing about the training."""
MEGABYTE = 1e6
READ_S = 60
"""Seconds for a client to send its body, so that slow clients do not block others."""


class Gate:
    """ASGI middleware. Bodies are measured while they are read and never held beyond the limits."""

    def __init__(self, app: ASGIApp, config: ServerConfig, token: str | None, meters: Meters) -> None:
        self._app = app
        self._config = config
        self._token = token
        self._meters = meters
        self._pending = 0
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = scope.get("route")  # of unknown paths nobody keeps a count each
                path = route.path if route is not None else "refused"
                self._meters.requests.labels(scope["method"], path, message["status"]).inc()
            await send(message)

        try:
            self._check_token(scope)
            if scope["method"] != "POST":
                await self._app(scope, receive, counted)
            else:
                await self._with_body(scope, receive, counted)
        except Refusal as refusal:
            await answer(refusal, counted)

    async def _with_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._pending >= self._config.max_pending:
            raise _busy(f"{self._pending} requests are under way")
        self._pending += 1
        body = bytearray()
        try:
            await self._read(scope, receive, body)
            self._show()
            await self._app(scope, _replay(bytes(body), receive), send)
        finally:
            self._pending -= 1
            self._bytes -= len(body)
            self._show()

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> None:
        limit = self._config.max_body_mb * MEGABYTE
        announced = _header(scope, b"content-length") or b"0"
        if announced.isdigit() and int(announced) > limit:
            raise _too_large(self._config)
        try:
            async with asyncio.timeout(READ_S):
                await self._read_to(limit, receive, body)
        except TimeoutError as error:
            raise Refusal(408, f"the body did not arrive within {READ_S} seconds") from error

    async def _read_to(self, limit: float, receive: Receive, body: bytearray) -> None:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "the connection ended before the body did")
            chunk = message.get("body", b"")
            body.extend(chunk)
            self._bytes += len(chunk)
            if len(body) > limit:
                raise _too_large(self._config)
            if self._bytes > self._config.max_pending_mb * MEGABYTE:
                raise _busy("the bodies of requests under way exceed serve.max_pending_mb")
            more = message.get("more_body", False)

    def _check_token(self, scope: Scope) -> None:
        if self._token is None or scope["path"] in OPEN:
            return
        given = _given_token(_header(scope, b"authorization") or b"")
        if not hmac.compare_digest(given, self._token.encode()):
            raise Refusal(
                401,
                "the token is missing or wrong; send it as Authorization: Bearer TOKEN, or as the password in the URL",
                {"WWW-Authenticate": "Bearer"},
            )

    def _show(self) -> None:
        self._meters.pending.set(self._pending)
        self._meters.pending_bytes.set(self._bytes)


async def answer(refusal: Refusal, send: Send) -> None:
    """Send a refusal as JSON."""
    body = json.dumps({"error": str(refusal)}).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **refusal.headers}
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body again, in one piece."""
    sent = False

    async def replay() -> dict[str, Any]:
        nonlocal sent
        if sent:
            return dict(await receive())
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _header(scope: Scope, name: bytes) -> bytes | None:
    return next((value for key, value in scope["headers"] if key == name), None)


def _given_token(header: bytes) -> bytes:
    """From `Bearer TOKEN`, or the password of `Basic …`, which trainers can put into a URL."""
    kind, _, value = header.partition(b" ")
    if kind.lower() == b"bearer":
        return value.strip()
    if kind.lower() == b"basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""


def _busy(why: str) -> Refusal:
    return Refusal(429, f"the server is busy: {why}; send the request again in a second", {"Retry-After": "1"})


def _too_large(config: ServerConfig) -> Refusal:
    return Refusal(413, f"the body is larger than {config.max_body_mb:g} MB (serve.max_body_mb); send fewer groups")
