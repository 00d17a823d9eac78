"""Connections without a token, idle sockets, slow bodies: none of them keeps others from being served."""

import asyncio
import json
import resource
import socket
import threading
import time
from contextlib import ExitStack, suppress

import httpx
import psutil
import pytest
import uvicorn

from cooper_rl import InputError
from cooper_rl.service.config import ServerConfig, listen
from cooper_rl.service.connections import limited
from cooper_rl.service.gate import memory_of
from cooper_rl.service.server import ACCEPTED_AT_ONCE, Server
from security.attacking import address, alive, head, held
from service.answered import groups


@pytest.fixture
def server(make_server):
    return make_server(name="connections", max_pending=16)


def test_idle_sockets_leave_the_server_its_descriptors(make_server):
    """More sockets than the process may open files: a commit is trained all the same, and its checkpoint written."""
    limit = (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    server = make_server(name="descriptors", checkpoint_every=1)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limit)
    client = server.client()
    client.score(groups(10), step=1)
    with held(server, 306):
        for step in (1, 2):
            client.score(groups(10 * step), step=step)
            assert client.update(step).version == step
        client.save(server.folder / "trainer")
        # There is room for all that are accepted before the server looks at any of them.
        assert psutil.Process(server.pid).num_fds() + ACCEPTED_AT_ONCE < limit[0]
    assert alive(server)
    assert "Too many open files" not in server.output()


def test_more_connections_than_there_is_room_for_close_the_one_that_waited_longest(server):
    with held(server, 4 * 16 + 20) as sockets:
        assert server.client().score(groups(10), train=False).version == 0
        sockets[0].settimeout(5)
        assert sockets[0].recv(1) == b""  # the first was closed, and the last was not
        sockets[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        sockets[-1].settimeout(20)
        assert b" 200 " in sockets[-1].recv(100)


def test_slow_bodies_occupy_no_slot(server):
    """With 16 slots, 40 clients that announce a body and do not send it."""
    for path in ("/healthz", "/docs", "/openapi.json", "/readyz", "/metrics", "/v1/score", "/x"):
        with held(server, 40, head(path, 1000) + b"{"):
            assert server.client(timeout_s=10).score(groups(10), train=False).version == 0, path
            assert "cooper_requests_pending 0.0" in server.get("/metrics").text, path


def test_without_the_token_nothing_but_reading_the_open_paths_is_exempt(make_server):
    server = make_server(name="token", token_env="COOPER_TEST_TOKEN")
    for path in ("/healthz", "/readyz", "/docs", "/openapi.json"):
        assert server.get(path).status_code == 200
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "X"):
            assert httpx.request(method, server.url + path).status_code == 401
        for near in (path + "/", "/" + path, path + "?x", path.upper(), path + "/../v1/info", "/v1/info?" + path):
            status = server.get(near).status_code
            assert status == (200 if near == path + "?x" else 401), near
    with held(server, 30, head("/healthz", 31_000_000) + b"x" * 60_000):
        assert httpx.get(server.url + "/v1/info", headers={"Authorization": "Bearer secret"}).status_code == 200
        assert psutil.Process(server.pid).memory_info().rss < 2e9


def test_waits_for_a_step_are_as_many_as_the_slots(server):
    """A wait of a minute costs nothing to ask for."""
    server.client().score(groups(10), step=1)
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(server.get("/v1/steps/1?wait_s=60").status_code))
        for _ in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) <= {200, 429}


@pytest.mark.slow
def test_large_bodies_share_one_budget_of_memory(make_server):
    """18 bodies of 31 MB, complete but for the last byte, held 1 GB; the oldest now give way."""
    server = make_server(name="memory", max_pending_mb=200.0)
    client = server.client()
    client.score(groups(10), train=False)
    process = psutil.Process(server.pid)
    before, most = process.memory_info().rss, [0]
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            most[0] = max(most[0], process.memory_info().rss)
            time.sleep(0.01)

    watching = threading.Thread(target=watch)
    watching.start()
    data = head("/v1/score", 31_000_000) + b" " * 30_999_000
    with ExitStack() as opened:
        for _ in range(18):
            connection = opened.enter_context(socket.create_connection(address(server), timeout=20))
            with suppress(ConnectionError):  # it has given way
                connection.sendall(data)
        assert client.score(groups(10), train=False).version == 0
    stop.set()
    watching.join()
    assert most[0] - before < 500e6


def test_a_body_of_many_small_values_counts_as_what_it_becomes():
    text = json.dumps({"text": 'a, b [c] {d} \\ " ' * 1000}).encode()
    assert memory_of(text) < 5 * len(text)
    assert memory_of(b"[" + b"[]," * 1000 + b"[]]") > 60 * 3000


def test_a_body_that_would_take_too_much_memory_is_refused(make_server):
    server = make_server(name="values", max_pending_mb=50.0)
    given = {"groups": [], "x": [[]] * 400_000}
    answer = server.post("/v1/score", given)
    assert answer.status_code == 413
    assert "MB of memory (serve.max_pending_mb)" in answer.json()["error"]
    assert server.client().score(groups(10), train=False).version == 0


def test_late_clients_are_closed():
    """Without a head, with half a head, and after a reply that is not read: in uvicorn, with a short time."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"40000000")]})
        await send({"type": "http.response.body", "body": b"x" * 40_000_000})

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=limited(20, 0.3), ws="none", log_config=None, lifespan="off")
    served = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(served.serve([listener])))
    thread.start()
    try:
        sockets = []
        for data in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"):
            sockets.append(socket.create_connection(listener.getsockname(), timeout=20))
            sockets[-1].sendall(data)
        until = time.monotonic() + 20
        while (not served.started or served.server_state.connections) and time.monotonic() < until:
            time.sleep(0.05)
        assert not served.server_state.connections
        for one in sockets:
            one.close()
    finally:
        served.should_exit = True
        thread.join()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_replies_do_not_wait_for_acknowledgements(host):
    """Every accepted connection has TCP_NODELAY. Without it, each reply on an open connection takes 40 ms more."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    async def delays() -> list[int]:
        server = Server(uvicorn.Config(app, http=limited(20), ws="none", log_config=None, lifespan="off"))
        serving = asyncio.create_task(server.serve([listener]))
        async with httpx.AsyncClient() as client:
            await client.get(f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/")
            accepted = [one.transport.get_extra_info("socket") for one in server.server_state.connections]
            found = [one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for one in accepted]
        server.should_exit = True
        await serving
        return found

    try:
        listener = listen(ServerConfig(host=host, port=0))
    except InputError:
        pytest.skip(f"this machine has no {host}")
    listener.listen()
    assert asyncio.run(delays()) == [1]


@pytest.mark.slow
def test_three_hundred_slow_clients_for_a_while(server):
    """They come again and again, for some seconds; every score is served."""
    until = time.monotonic() + 10
    client = server.client(timeout_s=5)
    served = 0
    while time.monotonic() < until:
        with held(server, 300, head("/docs", 1000) + b"{"):
            for _ in range(5):
                client.score(groups(10), train=False)
                served += 1
    assert served >= 5
