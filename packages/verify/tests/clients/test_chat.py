import threading
import time

import pytest

from chat_server import ChatServer, HttpAnswer, completion  # pyright: ignore[reportMissingImports]
from cooper_base.errors import InputError
from cooper_verify.clients.chat import ChatClient, ChatConfig

FAST = {"timeout_s": 5.0, "max_retries": 2}


def client_of(url: str, **settings) -> ChatClient:
    return ChatClient(ChatConfig(base_url=url, model="test", **(FAST | settings)))


def say(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def echo(request, number):
    return completion(request["messages"][-1]["content"] + "!", delay=0.02)


def test_replies_come_in_order_and_no_more_requests_run_at_once_than_allowed():
    with ChatServer(echo) as server, client_of(server.url, concurrency=4) as client:
        replies = client.submit([say(str(i)) for i in range(20)]).result(timeout=10)
    assert [reply.text for reply in replies] == [f"{i}!" for i in range(20)]
    assert 1 < server.busiest <= 4


def test_a_request_carries_the_settings_and_the_seed():
    with ChatServer(echo) as server:
        settings = {"temperature": 0.3, "max_tokens": 7, "extra_body": {"top_k": 5}}
        with client_of(server.url, **settings) as client:
            client.submit([say("a"), say("b")], seeds=[11, 12]).result(timeout=10)
        with client_of(server.url, extra_body={"seed": None}) as client:
            client.submit([say("c")], seeds=[13]).result(timeout=10)
    first = next(request for request in server.requests if request["messages"][0]["content"] == "a")
    expected = {"model": "test", "temperature": 0.3, "max_tokens": 7, "top_k": 5, "seed": 11}
    assert {key: first[key] for key in expected} == expected
    assert server.requests[-1]["seed"] is None


FAULTS = {
    "server error": (HttpAnswer('{"error": "broken"}', status=500), "http_5xx", 3),
    "overloaded": (HttpAnswer("{}", status=429), "http_429", 3),
    "overloaded for an hour": (HttpAnswer("{}", status=429, headers={"Retry-After": "3600"}), "http_429", 1),
    "in need of a key": (HttpAnswer("{}", status=401), "http_4xx", 1),
    "an odd charset": (
        HttpAnswer("{}", status=500, headers={"Content-Type": "text/plain; charset=hex"}),
        "http_5xx",
        3,
    ),
    "an endless error": (HttpAnswer("x" * 2**16, status=400, endless=True), "http_4xx", 1),
    "an endless reply": (HttpAnswer("x" * 2**16, endless=True), "oversized", 1),
    "no such model": (HttpAnswer('{"error": {"message": "unknown"}}', status=404), "http_4xx", 1),
    "slow": (completion("late", delay=5), "timeout", 3),
    "dripping": (completion("late", drip=0.05), "timeout", 3),
    "cut JSON": (HttpAnswer('{"choices": [{"message": {"con'), "malformed", 3),
    "a web page": (HttpAnswer("<html>login</html>"), "malformed", 3),
    "not an object": (HttpAnswer("[1, 2]"), "malformed", 3),
    "a thousand levels deep": (HttpAnswer('{"choices": ' + "[" * 100_000), "malformed", 3),
    "no probability": (completion("yes", first_token={"yes": float("nan")}), "malformed", 3),
    "a huge probability": (completion("yes", first_token={"yes": 10**400}), "malformed", 3),
    "null choices": (HttpAnswer('{"choices": null}'), "malformed", 3),
    "no choices": (HttpAnswer('{"choices": []}'), "malformed", 3),
    "hangs up": (HttpAnswer("", hang_up=True), "connection", 3),
    "not compressed": (HttpAnswer("garbage", headers={"Content-Encoding": "gzip"}), "connection", 3),
    "lost connection": (HttpAnswer('{"choices": [', missing=100), "connection", 3),
    "null text": (completion(None), "empty", 1),
    "blank text": (completion(" \n"), "empty", 1),
    "cut by max_tokens": (completion("1 + 1 =", finish_reason="length"), "truncated", 1),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_a_counted_failure_and_only_passing_ones_are_retried(name):
    answer, kind, requests = FAULTS[name]
    # Only the slow servers may run into the time-out: a busy machine must not turn another fault into one.
    timeout_s = 0.5 if kind == "timeout" else 5.0
    with ChatServer(lambda request, number: answer) as server, client_of(server.url, timeout_s=timeout_s) as client:
        [reply] = client.submit([say("hello")]).result(timeout=10)
    assert (reply.text, reply.failure) == ("1 + 1 =" if kind == "truncated" else "", kind)
    assert len(server.requests) == requests
    assert server.sent < 2**28  # a quarter of what an endless answer would send


def test_a_server_that_is_not_there_is_a_connection_failure():
    with ChatServer(echo) as server:
        url = server.url
    with client_of(url) as client:
        [reply] = client.submit([say("hello")]).result(timeout=10)
        assert reply.failure == "connection"
        with pytest.raises(InputError, match="base_url"):
            client.check()


def test_a_passing_fault_costs_only_a_retry():
    def recovers(request, number):
        return HttpAnswer("{}", status=503) if number < 2 else completion("fine")

    with ChatServer(recovers) as server, client_of(server.url) as client:
        [reply] = client.submit([say("hello")]).result(timeout=10)
    assert (reply.text, reply.failure, len(server.requests)) == ("fine", None, 3)


def test_a_server_that_names_a_time_is_asked_again_then():
    def overloaded(request, number):
        times.append(time.monotonic())
        return completion("fine") if number else HttpAnswer("{}", status=429, headers={"Retry-After": "1"})

    times: list[float] = []
    with ChatServer(overloaded) as server, client_of(server.url) as client:
        [reply] = client.submit([say("hello")]).result(timeout=10)
    assert reply.text == "fine"
    assert times[1] - times[0] >= 1


def test_a_server_that_answers_nothing_is_asked_once_until_it_is_back(caplog):
    broken = {"on": True}

    def respond(request, number):
        return HttpAnswer("{}", status=503) if broken["on"] else echo(request, number)

    def failures(count: int) -> list[str | None]:
        before = len(server.requests)
        replies = client.submit([say(str(i)) for i in range(count)]).result(timeout=10)
        asked.append(len(server.requests) - before)
        return [reply.failure for reply in replies]

    asked: list[int] = []
    with ChatServer(respond) as server, client_of(server.url) as client:
        assert failures(2) == ["http_5xx"] * 2
        assert failures(3) == ["http_5xx", "not_sent", "not_sent"]
        broken["on"] = False
        assert failures(3) == [None] * 3
        assert failures(0) == []
        assert asked == [6, 1, 3, 0]
    assert [text.split("/v1 ")[1].split(" (")[0] for text in caplog.messages] == [
        "answered none of 2 requests",
        "answers again",
    ]


def test_half_a_character_does_not_reach_a_file():
    half = HttpAnswer('{"choices": [{"message": {"content": "7 \\ud800"}, "finish_reason": "stop"}]}')
    with ChatServer(lambda request, number: half) as server, client_of(server.url) as client:
        [reply] = client.submit([say("hello")]).result(timeout=10)
    assert reply.text == "7 ?"


def test_one_bad_request_does_not_spoil_the_others():
    def breaks_on_b(request, number):
        return HttpAnswer("nonsense") if request["messages"][-1]["content"] == "b" else echo(request, number)

    with ChatServer(breaks_on_b) as server, client_of(server.url) as client:
        replies = client.submit([say("a"), say("b"), say("c")]).result(timeout=10)
    assert [(reply.text, reply.failure) for reply in replies] == [("a!", None), ("", "malformed"), ("c!", None)]


def test_requests_finish_while_the_caller_computes():
    with ChatServer(echo) as server, client_of(server.url) as client:
        future = client.submit([say("hello")])
        busy_until = time.perf_counter() + 0.5
        while time.perf_counter() < busy_until:  # keeps the interpreter busy as a training step would
            sum(range(1000))
        assert future.done()


def _client_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "chat-client"]


def test_closing_cancels_what_is_under_way_and_ends_the_thread():
    others = {*_client_threads()}  # of clients that earlier tests left to the end of the process
    with ChatServer(lambda request, number: completion("late", delay=30)) as server:
        client = client_of(server.url, timeout_s=60)
        future = client.submit([say("hello")])
        while not server.requests:
            time.sleep(0.01)
        start = time.perf_counter()
        client.close()
        client.close()
        assert time.perf_counter() - start < 2
        assert future.cancelled()
        assert not {*_client_threads()} - others
    with pytest.raises(RuntimeError, match="closed"):
        client.submit([say("hello")])


def test_a_missing_api_key_is_named_before_anything_is_sent(monkeypatch):
    monkeypatch.delenv("COOPER_TEST_KEY", raising=False)
    with pytest.raises(InputError, match="COOPER_TEST_KEY"):
        client_of("http://127.0.0.1:9/v1", api_key_env="COOPER_TEST_KEY")


def test_check_accepts_a_server_that_answers():
    cut_reply = completion("rea", finish_reason="length")
    with ChatServer(lambda request, number: cut_reply) as server, client_of(server.url) as client:
        client.check()
