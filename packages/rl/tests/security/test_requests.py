"""Malformed and hostile requests: each is refused for itself, and the server goes on."""

import json
import time
from random import Random
from typing import Any

import httpx
import pytest

from cooper_rl.service.client import score_call
from security.attacking import alive, all_of, raw
from service.answered import group, groups

BOUND_S = 60
"""Most seconds that the generator sends requests."""
ROUTES = ("/v1/score", "/v1/steps/1/commit", "/v1/checkpoints", "/v1/restore", "/classify")


@pytest.fixture(scope="module")
def server(module_server):
    return module_server(name="requests", max_body_mb=4.0)


def body(**more: Any) -> dict[str, Any]:
    found = score_call([group(10)], None, False, run=None, partial=False, commit=None).body
    assert found is not None
    return {**found, **more}


def nested(depth: int, kind: str = "list") -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if kind == "list" else {"a": value}
    return value


@pytest.mark.parametrize("kind", ["list", "object"])
@pytest.mark.parametrize("phase", ["train", "eval"])
def test_deep_metadata_is_refused_for_itself(server, kind, phase):
    """The report's request: metadata nested 600 deep stopped the server for good."""
    for depth in (62, 100, 150, 300, 600, 900, 3000):
        given = body(phase=phase)
        given["groups"][0]["id"] = f"{kind}-{depth}"
        text = json.dumps(given).replace('"metadata": {}', f'"metadata": {{"a": {_nested_text(depth, kind)}}}')
        answer = httpx.post(server.url + "/v1/score", content=text, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422), (depth, answer.text)
        assert "nested" in answer.json()["error"]
    assert alive(server)
    given = body(phase="eval")
    given["groups"][0]["problem"]["metadata"] = {"a": nested(20, kind)}
    assert server.post("/v1/score", given).status_code == 200


def test_a_reward_that_exits_fails_its_request_and_the_next_is_answered(make_server):
    rewards = [{"kind": "service.answered:Exiting"}]
    server = make_server(name="exits", reward={"kind": "function", "rewards": rewards})
    for _ in range(2):
        answer = httpx.post(server.url + "/v1/score", json=body(phase="eval"), timeout=60)
        assert answer.status_code == 500
    assert alive(server)


def _nested_text(depth: int, kind: str) -> str:
    begin, end = ("[", "]") if kind == "list" else ('{"a":', "}")
    return begin * depth + "1" + end * depth


def test_deep_values_are_refused_wherever_they_stand(server):
    deep = nested(300)
    call = {"role": "assistant", "content": "", "tool_calls": [{"name": "run", "arguments": {"code": deep}}]}
    given = body()
    given["groups"][0]["completions"][0] = {"messages": [call], "verdict": "wrong"}
    label = json.dumps({"question": "?", "answer": "1", "completion": [call]})
    for path, content in (("/v1/score", given), ("/classify?commit=count:9", {"input": label})):
        answer = server.post(path, content)
        assert (answer.status_code, "nested" in answer.json()["error"]) == (422, True), answer.text
    assert alive(server)


@pytest.mark.parametrize("number", [2**53, 10**30, 10**400, -1, -(10**30)])
def test_numbers_out_of_bounds_are_refused(server, number):
    """A step of 10^30 was accepted, and one of 10^400 broke the metrics and every checkpoint."""
    text = json.dumps(body()).replace('"step": null', f'"step": {number}')
    head = {"Content-Type": "application/json"}
    answers = [httpx.post(server.url + "/v1/score", content=text, headers=head)]
    answers.append(server.post(f"/v1/steps/{number}/commit", {"expected": 0}))
    answers.append(server.get(f"/v1/steps/{number}"))
    for path, field in (("/v1/steps/1/commit", "expected"), ("/v1/restore", "step"), ("/v1/checkpoints", "step")):
        content = f'{{"{field}": {number}}}'
        answers.append(httpx.post(server.url + path, content=content, headers=head))
    given = body()
    given["groups"][0]["completions"][0]["tokens"] = number
    answers.append(server.post("/v1/score", given))
    for answer in answers:
        assert answer.status_code == 422, (answer.request.url, answer.text)
        assert answer.json()["error"]
    assert server.get("/metrics").status_code == 200
    assert server.get("/v1/info").json()["last_step"] == 0


@pytest.mark.parametrize("query", ["nan", "inf", "-1", "x"])
def test_a_wait_that_is_no_time_is_refused(server, query):
    answer = server.get(f"/v1/steps/1?wait_s={query}")
    assert (answer.status_code, "wait_s" in answer.json()["error"]) == (422, True)


def test_a_request_that_fails_spoils_no_other_in_its_batch(server):
    """Deep values that fit the wire's bound, and a request beside them, at once."""
    import threading

    answers: list[int] = []
    contents = [body(phase="eval") for _ in range(6)]
    for one in contents[::2]:
        one["groups"][0]["problem"]["rule"] = "no_such_rule"
    threads = [
        threading.Thread(target=lambda c=c: answers.append(server.post("/v1/score", c).status_code)) for c in contents
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] * 3 + [422] * 3


HOSTILE = (
    None, True, 0, -1, 1.5, 1e308, 2**53, 10**40, "", "x", "\0", "\ud7ff", "🙂" * 50, "a" * 5000, [], {}, [[]],
    {"a": {}}, [None], nested(80), nested(80, "object"), "1; DROP TABLE", "../../etc/passwd", "${x}", "%s%n",
)  # fmt: skip


def spoiled(value: Any, rng: Random) -> Any:
    """A copy of a JSON value with one part of it exchanged, removed, repeated or renamed."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice(sorted(value))
        change = rng.random()
        if change < 0.1:
            return {key: value[key] for key in value if key != name}
        if change < 0.2:
            return {**value, name + "_": value[name]}
        return {**value, name: spoiled(value[name], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        if rng.random() < 0.15:
            return value + [value[place]] * rng.choice((1, 30))
        return [*value[:place], spoiled(value[place], rng), *value[place + 1 :]]
    return rng.choice(HOSTILE)


def bodies() -> list[tuple[str, Any]]:
    label = {"question": "1 + 1 = ?", "answer": "2", "split": "test"}
    whole = body()
    return [
        ("/v1/score", whole),
        ("/v1/score", {**whole, "phase": "train", "step": 1}),
        ("/v1/steps/1/commit", {"keep": ["g10"], "expected": 1}),
        ("/v1/checkpoints", {"step": 0}),
        ("/v1/restore", {"step": 0, "history": ""}),
        ("/classify?commit=count:99", {"input": [json.dumps({**label, "completion": "2"})]}),
    ]


def attack(server, count: int, seed: int) -> dict[int, int]:
    """Send so many spoiled requests, and count the statuses of the replies."""
    rng, counts, until = Random(seed), dict[int, int](), time.monotonic() + BOUND_S
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for _ in range(count):
            path, content = rng.choice(bodies())
            for _ in range(rng.choice((1, 1, 2, 4))):
                content = spoiled(content, rng)
            data = json.dumps(content).encode()
            if rng.random() < 0.15:
                place = rng.randrange(len(data) or 1)
                data = (
                    data[:place] + bytes(rng.randrange(256) for _ in range(rng.choice((0, 1, 9)))) + data[place + 1 :]
                )
            answer = client.post(path, content=data, headers={"Content-Type": "application/json"})
            counts[answer.status_code] = counts.get(answer.status_code, 0) + 1
            assert answer.status_code < 500, (path, data[:500], answer.text)
            if answer.status_code >= 400:
                assert answer.json()["error"]
            if time.monotonic() > until:
                break
    return counts


def test_spoiled_requests_are_refused_and_nothing_breaks(server):
    counts = attack(server, 150, seed=0)
    assert counts.get(422, 0) + counts.get(400, 0) > 50
    assert alive(server)
    assert server.get("/metrics").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_many_spoiled_requests(server, seed):
    attack(server, 2000, seed)
    assert alive(server)
    client = server.client()
    client.score(groups(400), train=False)


RAW = (
    b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
    b"POST /v1/score HTTP/1.1\r\n\r\n", b"GET /v1/info HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
    b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X%d: y\r\n" % i for i in range(9000)) + b"\r\n",
    b"GET /%00%ff/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)  # fmt: skip


@pytest.mark.parametrize("data", RAW, ids=range(len(RAW)))
def test_what_is_not_http_is_refused(server, data):
    first = raw(server, data + b"\r\n\r\n").split(b"\r\n")[0]
    assert first == b"" or first.split(b" ")[1] in (b"200", b"400", b"403", b"404", b"413", b"415"), first
    assert alive(server)


@pytest.mark.parametrize("path", ["GET /healthz", "GET /v1/info", "POST /v1/score", "DELETE /nowhere"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_request_with_two_ends_is_refused_and_nothing_behind_it_is_read(server, path, order):
    lengths = ["Content-Length: 4", "Transfer-Encoding: chunked"][::order]
    head = "\r\n".join([f"{path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *lengths])
    data = f"{head}\r\n\r\n0\r\n\r\nGET /v1/info HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    answer = all_of(server, data.encode())
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert alive(server)


def test_a_random_method_and_path_leave_no_series_behind(server):
    before = len(server.get("/metrics").text.splitlines())
    for number in range(40):
        httpx.request(f"X{number}", f"{server.url}/v1/info", timeout=20)
        httpx.request(f"Y{number}", f"{server.url}/nowhere/{number}", timeout=20)
        httpx.request("OPTIONS", f"{server.url}/nowhere/{number}", timeout=20)
    assert len(server.get("/metrics").text.splitlines()) <= before + 4
