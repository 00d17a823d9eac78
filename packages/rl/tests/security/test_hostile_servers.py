"""Servers that drip, flood and say nonsense: every client has a bound of time and one of bytes, whatever is sent."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from cooper_base.errors import EngineLost, InputError
from cooper_rl.engines.scale.vllm import VllmConfig, engines
from cooper_rl.service import client as service_client
from cooper_rl.service.client import AsyncRewardClient, RewardClient, ServiceFailedError, UnavailableError
from cooper_verify.clients.chat import ChatClient, ChatConfig

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHAT = [{"role": "user", "content": "?"}]


@contextlib.contextmanager
def serving(send: Callable[[socket.socket, threading.Event], None]) -> Iterator[str]:
    """A server that sends to each connection what `send` does, until it is told to stop."""
    stop = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(1 << 16)
            send(connection, stop)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stop.set()
        listener.close()


def dripping_body(connection, stop):
    connection.sendall(OK + b"Content-Length: 100000\r\n\r\n")
    while not stop.wait(0.05):
        connection.sendall(b" ")


def dripping_head(connection, stop):
    connection.sendall(OK)
    while not stop.wait(0.05):
        connection.sendall(b"X-More: 1\r\n")


def silent(connection, stop):
    stop.wait(60)


def flooding(connection, stop):
    connection.sendall(OK + b"Connection: close\r\n\r\n")
    while not stop.is_set():
        connection.sendall(b" " * (1 << 16))


def lists(connection, stop):
    connection.sendall(OK + b"Connection: close\r\n\r\n[" + b"[]," * (5 << 20) + b"[]]")


def ask_service(url):
    with RewardClient(url, timeout_s=1) as client:
        client.info()


def ask_service_from_a_loop(url):
    async def ask():
        async with AsyncRewardClient(url, timeout_s=1) as client:
            await client.info()

    asyncio.run(ask())


@pytest.mark.parametrize("send", [dripping_body, dripping_head, silent])
@pytest.mark.parametrize("ask", [ask_service, ask_service_from_a_loop])
def test_a_server_that_never_ends_its_reply_is_given_up(send, ask):
    with serving(send) as url, pytest.raises(UnavailableError, match="no whole reply within 1 s"):
        ask(url)


@pytest.mark.parametrize(("send", "why"), [(flooding, "exceeds 1048576 bytes"), (lists, "more than 4194304 values")])
@pytest.mark.parametrize("ask", [ask_service, ask_service_from_a_loop])
def test_a_reply_that_fills_memory_is_refused(monkeypatch, send, why, ask):
    if send is flooding:
        monkeypatch.setattr(service_client, "LARGEST_REPLY", 1 << 20)
    with serving(send) as url, pytest.raises((ServiceFailedError, UnavailableError), match=why):
        ask(url)


@pytest.mark.parametrize(
    ("send", "why"), [(dripping_body, "no whole reply within 1 s"), (flooding, "exceeds 1048576 by")]
)
def test_the_client_of_a_vllm_server_has_them_too(monkeypatch, send, why):
    monkeypatch.setattr(engines, "LARGEST_REPLY", 1 << 20)
    with serving(send) as url, pytest.raises((EngineLost, InputError), match=why):
        engines.RemoteEngine(VllmConfig(url=url, timeout_s=1), "nccl")


@pytest.mark.parametrize(
    ("send", "failure"), [(dripping_body, "timeout"), (dripping_head, "timeout"), (flooding, "oversized")]
)
def test_the_chat_client_has_the_same_bounds(send, failure):
    with serving(send) as url:
        config = ChatConfig(base_url=f"{url}/v1", model="m", timeout_s=1, max_retries=0)
        with ChatClient(config) as client:
            [reply] = client.submit([CHAT]).result()
        assert reply.failure == failure
