"""Raw connections to a server, for what no client library sends."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx

from service.served import Served


def address(server: Served) -> tuple[str, int]:
    host, port = server.url.removeprefix("http://").split(":")
    return host, int(port)


def raw(server: Served, data: bytes, timeout: float = 20) -> bytes:
    """The beginning of the reply to these bytes; empty if the server hangs up."""
    with socket.create_connection(address(server), timeout=timeout) as connection:
        connection.sendall(data)
        return connection.recv(65536)


def all_of(server: Served, data: bytes, timeout: float = 20) -> bytes:
    """All that the server sends for these bytes until it hangs up."""
    with socket.create_connection(address(server), timeout=timeout) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@contextmanager
def held(server: Served, count: int, data: bytes = b"") -> Iterator[list[socket.socket]]:
    """Connections that send these bytes and then nothing. Some of them may be closed by the server."""
    with ExitStack() as opened:
        made = []
        for _ in range(count):
            connection = opened.enter_context(socket.create_connection(address(server), timeout=20))
            made.append(connection)
            if data:
                connection.sendall(data)
        yield made


def head(path: str, length: int, method: str = "POST", host: str = "127.0.0.1") -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def alive(server: Served) -> bool:
    return httpx.get(server.url + "/readyz", timeout=20).status_code == 200
