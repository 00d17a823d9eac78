"""The checks before a request is handled: who sends it, and whether there is room for it."""

import asyncio
import base64
import binascii
import hmac
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cooper_rl.service.app import refused
from cooper_rl.service.config import ServerConfig, is_loopback
from cooper_rl.service.training import Refusal
from cooper_rl.service.worker import Meters

OPEN = frozenset({"/healthz", "/readyz", "/docs", "/openapi.json"})
"""Paths that may be read without a token; they reveal nothing about the training."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods that are counted by name."""
MEGABYTE = 1e6
READ_S = 60.0
"""Seconds for a client to send its body: the largest (`max_body_mb`) then needs about 4 Mbit/s."""
OF_TEXT, OF_VALUES = 4, 64
"""Bytes of memory that a request takes for each byte of its body, and for each byte that is in no string: `[],[],…`
becomes objects that are much larger."""
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_STRING = re.compile(rb'"[^"]*+"')
MEASURED_ASIDE = 2**16
"""Bodies beyond this are measured in another thread: one of this size takes milliseconds, for which all others wait."""


@dataclass(eq=False)
class Reading:
    """A body that is arriving."""

    until: asyncio.Timeout | None = None
    held: int = 0
    """Memory that is reserved for its request, in bytes."""
    dropped: bool = False
    """Whether it gave way to others."""


class RequestGate:
    """ASGI middleware. Bodies are measured while they are read and never held beyond the limits.

    Requests get a slot when they have arrived. What arrives slowly holds no slot, and if memory runs short, the body
    that has been arriving for longest gives way.
    """

    def __init__(self, app: ASGIApp, config: ServerConfig, token: str | None, meters: Meters) -> None:
        self._app, self._config, self._token, self._requests = app, config, token, meters.requests
        self._under_way = {"POST": 0, "other": 0}
        self._bytes = 0
        self._readings: list[Reading] = []
        """Bodies that are arriving, the oldest first."""
        meters.pending.set_function(lambda: self._under_way["POST"])
        meters.pending_bytes.set_function(lambda: self._bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = scope.get("route")  # of unknown paths and methods nobody keeps a count each
                path = route.path if route is not None else "refused"
                method = scope["method"] if scope["method"] in METHODS else "other"
                self._requests.labels(method, path, message["status"]).inc()
            await send(message)

        is_open = scope["method"] == "GET" and scope["path"] in OPEN
        headers = Headers(scope=scope)
        try:
            _check_length(headers)
            self._check_site(headers, is_open)
            if is_open:
                await self._app(scope, receive, counted)
                return
            self._check_token(headers)
            if scope["method"] == "POST":
                await self._with_body(scope, headers, receive, counted)
                return
            async with self._slot("other"):
                await self._app(scope, receive, counted)
        except Refusal as error:
            await refused(error)(scope, receive, counted)

    def _check_site(self, headers: Headers, is_open: bool) -> None:
        """Refuse what a browser sends for a page of another site.

        Without a token, the name in `Host` must be one of this machine: another site's name that resolves to it would
        let that site's pages read and write.
        """
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        if self._token is None and host and not _names_this_machine(host):
            why = f"this server has no token and answers to 127.0.0.1 and localhost alone, not to {host[:100]!r}"
            raise Refusal(403, f"{why}; set serve.token_env, or let the proxy send Host: localhost")
        if origin is not None and origin.lower().partition("://")[2] != host:
            raise Refusal(403, f"a page of {origin[:100]!r} may not use this server; call it from a program")
        if not is_open and headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refusal(403, "a page of another site may not use this server; call it from a program")

    def _check_token(self, headers: Headers) -> None:
        if self._token is None:
            return
        given = _given_token(headers.get("authorization", "").encode("latin-1"))
        if not hmac.compare_digest(given, self._token.encode()):
            how = "set COOPER_TOKEN for RewardClient, or send Authorization: Bearer TOKEN or a password in the URL"
            raise Refusal(401, f"the token is missing or wrong; {how}", {"WWW-Authenticate": "Bearer"})

    @asynccontextmanager
    async def _slot(self, kind: str) -> AsyncIterator[None]:
        if self._under_way[kind] >= self._config.max_pending:
            raise _busy(f"{self._under_way[kind]} requests are under way")
        self._under_way[kind] += 1
        try:
            yield
        finally:
            self._under_way[kind] -= 1

    async def _with_body(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        if (announced := headers.get("content-length", "0")).isdecimal():
            self._check_size(int(announced))
        if announced != "0" or "transfer-encoding" in headers:
            _check_type(headers)
        if self._under_way["POST"] >= self._config.max_pending:
            raise _busy(f"{self._under_way['POST']} requests are under way")
        reading = Reading()
        try:
            body = await self._read(receive, reading)
            async with self._slot("POST"):
                await self._app(scope, _replay(body, receive), send)
        finally:
            self._bytes -= reading.held

    async def _read(self, receive: Receive, reading: Reading) -> bytes:
        """The body, with memory reserved for its request. Raises Refusal: 408, 413 or 429."""
        self._readings.append(reading)
        try:
            async with asyncio.timeout(READ_S) as reading.until:
                body = await self._arriving(receive, reading)
        except TimeoutError as error:
            if reading.dropped:
                raise _no_memory() from error
            raise Refusal(408, f"the body did not arrive within {READ_S:g} seconds") from error
        finally:
            self._readings.remove(reading)
        memory = memory_of(body) if len(body) < MEASURED_ASIDE else await run_in_threadpool(memory_of, body)
        if memory > self._config.max_pending_mb * MEGABYTE:
            why = f"the request would take about {memory / MEGABYTE:.0f} MB of memory (serve.max_pending_mb)"
            raise Refusal(413, f"{why}; send fewer groups, or fewer values in metadata")
        self._reserve(reading, memory - reading.held)
        return body

    async def _arriving(self, receive: Receive, reading: Reading) -> bytes:
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "the connection ended before the body did")
            chunk = message.get("body", b"")
            body.extend(chunk)
            self._check_size(len(body))
            self._reserve(reading, len(chunk))
            more = message.get("more_body", False)
        return bytes(body)

    def _reserve(self, reading: Reading, memory: int) -> None:
        """Raises Refusal (429) if there is not enough, though older bodies that are still arriving gave way."""
        if reading.dropped:
            raise _no_memory()
        self._bytes += memory
        reading.held += memory
        while self._bytes > self._config.max_pending_mb * MEGABYTE:
            oldest = next((waiting for waiting in self._readings if not waiting.dropped), reading)
            if oldest is reading or oldest.until is None:
                raise _no_memory()
            oldest.dropped = True
            self._bytes -= oldest.held
            oldest.held = 0
            if not oldest.until.expired():
                oldest.until.reschedule(asyncio.get_running_loop().time())

    def _check_size(self, size: int) -> None:
        limit = self._config.max_body_mb
        if size > limit * MEGABYTE:
            raise Refusal(413, f"the body is larger than {limit:g} MB (serve.max_body_mb); send fewer groups")


def memory_of(body: bytes) -> int:
    """About how many bytes a request with this body takes while it is read and handled."""
    return OF_TEXT * len(body) + OF_VALUES * len(_STRING.sub(b"", _ESCAPE.sub(b"", body)).translate(None, b" \t\r\n"))


def _check_length(headers: Headers) -> None:
    """Raises Refusal (400), and closes the connection: a proxy may see another end of this body than the server, and
    what is behind that end would be another request."""
    if "content-length" in headers and "transfer-encoding" in headers:
        why = "the request has Content-Length and Transfer-Encoding, so its end is unclear; send one of them"
        raise Refusal(400, why, {"Connection": "close"})


def _check_type(headers: Headers) -> None:
    """Raises Refusal (415). The types that a browser sends to another site without asking are others."""
    kind = headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        sent = f"{kind[:100]!r}" if kind else "none"
        raise Refusal(415, f"the body's Content-Type is {sent}; send Content-Type: application/json (curl: --json)")


def _names_this_machine(host: str) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:  # no address
        return False


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


def _no_memory() -> Refusal:
    return _busy("the requests under way exceed serve.max_pending_mb")
