"""Connections that keep the server waiting are closed, so that they leave room, and descriptors, for the others."""

import asyncio
from math import inf

from uvicorn.protocols.http.h11_impl import H11Protocol

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None

WAIT_S = 30.0
"""Seconds for a client to send a request's head, or to read a reply."""
RESERVE = 100
"""Descriptors that no connection takes: for journals, checkpoints, processes of the rule and the assistant. At most
half of those that the process may open."""


def highest_descriptor() -> float:
    """The last descriptor that a connection may have."""
    if resource is None:
        return inf
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return inf if limit == resource.RLIM_INFINITY else limit - min(RESERVE, limit // 2)


class Connection(H11Protocol):
    """A connection of uvicorn's. `limited` makes the class that a server takes."""

    most: int
    wait_s: float

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # pyright: ignore[reportArgumentType] - uvicorn names the narrower type
        self._since = self.loop.time()
        self._unread_since: float | None = None
        self._timer = self.loop.call_later(self.wait_s, self._close_if_late)
        # A new descriptor is the lowest that is free, so it tells how many are in use.
        excess = transport.get_extra_info("socket").fileno() - highest_descriptor()
        if (excess := max(excess, len(self.connections) - self.most)) > 0:
            self._make_room(int(excess))

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:  # a request's head is complete
            self._since = self.loop.time()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._unread_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unread_since = None
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    @property
    def waiting_since(self) -> float | None:
        """Since when the client has kept the server waiting; None while the server works on its request."""
        if self._unread_since is not None:
            return self._unread_since
        working = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        return None if working else self._since

    def _close_if_late(self) -> None:
        """Close the connection if its time is over. A body that does not arrive is the gate's to refuse."""
        in_body = self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete
        since = self.loop.time() if in_body else self.waiting_since
        left = self.wait_s if since is None else since + self.wait_s - self.loop.time()
        if left <= 0:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(left, self._close_if_late)

    def _make_room(self, excess: int) -> None:
        """Close so many connections, those that have waited longest for their clients; this one may be among them."""
        here = [connection for connection in self.connections if isinstance(connection, Connection)]
        left = [connection for connection in here if not connection.transport.is_closing()]
        waiting = [
            (since, place) for place, connection in enumerate(left) if (since := connection.waiting_since) is not None
        ]
        for _, place in sorted(waiting)[: max(0, excess - (len(here) - len(left)))]:
            left[place].transport.abort()


def limited(most: int, wait_s: float = WAIT_S) -> type[Connection]:
    """The class of a server's connections: at most so many, which wait for so many seconds."""
    return type("LimitedConnection", (Connection,), {"most": most, "wait_s": wait_s})
