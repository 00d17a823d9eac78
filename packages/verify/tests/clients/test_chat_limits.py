"""Limits on requests and tokens a minute, with a minute of one second: in one process, in several, and what is said."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from chat_server import ChatServer, HttpAnswer, completion  # pyright: ignore[reportMissingImports]
from cooper_base.errors import InputError
from cooper_base.pace import Pace
from cooper_base.progress import Listener, awaited, listening, part
from cooper_verify.clients import limits
from cooper_verify.clients.chat import ChatClient, ChatConfig
from cooper_verify.clients.limits import MinuteLimits, waiting_for

HI = [{"role": "user", "content": "hi"}]


@pytest.fixture(autouse=True)
def short_minute(monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "WINDOW_S", 1.0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def answering(tokens: int | None = None):
    """A server that answers at once."""
    usage = {} if tokens is None else {"usage": {"total_tokens": tokens}}
    body = json.dumps({**json.loads(completion("yes").body), **usage})
    return lambda request, number: HttpAnswer(body)


def most_in_a_minute(times: list[float], seconds: float = 0.98) -> int:
    return max(sum(start <= at < start + seconds for at in times) for start in times)


def client_of(server, **settings) -> ChatClient:
    return ChatClient(ChatConfig(base_url=server.url, model="test", **settings))


def test_requests_wait_their_turn_and_retries_count():
    def flaky(request, number):
        return HttpAnswer("{}", status=500) if number % 3 == 0 else answering()(request, number)

    start = time.monotonic()
    with ChatServer(flaky) as server, client_of(server, requests_per_minute=4) as client:
        replies = client.submit([HI] * 8).result(timeout=30)
        waited = client.limits.take_waited_s()
        assert client.limits.take_waited_s() == 0
    assert all(reply.failure is None for reply in replies)
    assert len(server.requests) > 8
    assert time.monotonic() - start > 2  # three minutes have begun
    assert waited > 4


def test_tokens_are_estimated_and_then_counted_as_the_server_says():
    took = []
    for tokens in (None, 10):  # 2 // 3 + 50 tokens each, of 100
        settings = {"tokens_per_minute": 100, "max_tokens": 50}
        with ChatServer(answering(tokens)) as server, client_of(server, **settings) as client:
            client.submit([HI]).result(timeout=30)  # connects
            start = time.monotonic()
            client.submit([HI] * 3).result(timeout=30)
            took.append(time.monotonic() - start)
    assert took[1] < 0.9 < took[0]


TAKE = """
import asyncio, sys, tempfile, time
from cooper_verify.clients import limits
limits.WINDOW_S, tempfile.tempdir = 1.0, sys.argv[1]
time.time = lambda: time.time_ns() / 1e9 + float(sys.argv[2])
async def take():
    own, times = limits.MinuteLimits("http://a", "m", 4, None), []
    async def one():
        await own.take(1)
        times.append(time.monotonic())
    await asyncio.gather(*(one() for _ in range(6)))
    print(*times)
asyncio.run(take())
"""


@pytest.mark.parametrize("apart_s", [0, 30], ids=["", "clocks apart"])
def test_processes_share_the_limits(tmp_path, apart_s):
    command = [sys.executable, "-c", TAKE, str(tmp_path)]
    processes = [subprocess.Popen([*command, str(s)], stdout=subprocess.PIPE, text=True) for s in (0, apart_s)]
    times = [float(time) for process in processes for time in process.communicate(timeout=60)[0].split()]
    assert len(times) == 12
    assert most_in_a_minute(times, 0.5) <= 4  # a process that waits for a core is late to note its time


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_is_killed_at_any_line_leaves_what_was_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "WINDOW_S", 3600)
    own = MinuteLimits("http://a", "m", 100, None)
    for _ in range(3):
        own._enter(1)
    (ledger,) = tmp_path.glob("cooper-limits-*/*.json")
    before, sent, line = ledger.read_bytes(), [], 0
    while _killed_at(line := line + 1, lambda: own._enter(1)):
        sent.append(sum(requests for requests, _ in limits._read(ledger, time.monotonic()).values()))
        ledger.write_bytes(before)
    assert set(sent) == {3, 4}
    assert len(sent) > 15


def _killed_at(line: int, call) -> bool:
    """Whether a fork that makes the call was killed, at this line of the module of the limits."""
    left = line

    def trace(frame, event, argument):
        nonlocal left
        if frame.f_code.co_filename != limits.__file__:
            return None
        if event == "line" and (left := left - 1) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    if (process := os.fork()) == 0:
        sys.settrace(trace)
        call()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("settings", "tokens", "most"), [((2, None), 1, 2), ((None, 100), 50, 2), ((9, 100), 50, 2), ((None, 10), 50, 1)]
)
def test_clients_of_one_server_share_the_limits_and_other_models_have_their_own(settings, tokens, most):
    times = []

    async def take(own):
        await own.take(tokens)
        times.append(time.time())

    async def all_of_them():
        same = [MinuteLimits("http://a", "x", *settings) for _ in range(2)]
        other = MinuteLimits("http://a", "y", *settings)
        assert not isinstance(other._enter(tokens), float)
        await asyncio.gather(*(take(own) for own in same for _ in range(2)))

    asyncio.run(all_of_them())
    assert most_in_a_minute(times) == most  # a request larger than a minute's tokens is alone in its minute


def test_the_wait_is_said_while_it_lasts():
    lines = []
    with ChatServer(answering()) as server, client_of(server, requests_per_minute=1) as client:
        future = client.submit([HI] * 3)
        with listening(Listener(lambda at: lines.append(Pace().describe(at)))), part("wait_for_assistant"):
            awaited(future, waiting_for)
    assert waiting_for() == ""
    assert any(
        line.startswith("gathering pairs and the assistant's replies  waiting 1 s for requests_per_minute: 1")
        for line in lines
    )


def test_without_limits_nothing_is_written(tmp_path):
    with ChatServer(answering()) as server, client_of(server) as client:
        client.submit([HI]).result(timeout=30)
        assert client.limits.take_waited_s() == 0
    assert not list(tmp_path.iterdir())


def test_a_ledger_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(tempfile, "tempdir", str(file))
    with pytest.raises(InputError, match="set TMPDIR to a folder of your own"):
        MinuteLimits("http://a", "x", 1, None)


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"a": 1}', '{"1": [2]}', '{"99999999999": [9, 9]}'])
def test_a_broken_ledger_or_one_from_the_future_holds_nothing_up(content, tmp_path):
    server, model = "http://a", "x"
    MinuteLimits(server, model, 1, None)
    (ledger,) = Path(tmp_path).glob("cooper-limits-*/*.json")
    ledger.write_text(content)
    assert not isinstance(MinuteLimits(server, model, 1, None)._enter(1), float)


@pytest.mark.parametrize("taken", ["folder", "file", "link"])
def test_a_folder_that_somebody_else_made_first_blocks_nobody(monkeypatch, tmp_path, taken):
    me = os.getuid() + 1  # whoever that is, the folder is not theirs
    monkeypatch.setattr(os, "getuid", lambda: me)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = tmp_path / f"cooper-limits-{me}"
    (tmp_path / "elsewhere").mkdir()
    make = {"folder": place.mkdir, "file": place.touch, "link": lambda: place.symlink_to("elsewhere")}
    make[taken]()
    for fits in (True, False):
        limits = MinuteLimits("http://a", "x", 1, None)
        assert isinstance(limits._enter(1), float) != fits, "all processes of the user keep the limit together"
    assert not [*tmp_path.glob("cooper-limits-*/*"), *(tmp_path / "elsewhere").iterdir()]
    assert len([*tmp_path.glob("cache/cooper-rl/limits-*/*.json")]) == 1
