"""What the service does not do, and how it says so."""

import json
import socket
import threading
from typing import Any

import httpx
import pytest

from cooper_rl import InputError
from cooper_rl.service.client import RefusedError, RewardClient, UnavailableError, score_call
from service.answered import group, groups

SLOW = {"kind": "function", "rewards": [{"kind": "function", "function": "service.answered:slow"}]}


def body(first: Any = 10, step: Any = 1, train: Any = True, **more: Any) -> dict[str, Any]:
    found = score_call(groups(first), step, train, run=None, partial=False, commit=None).body
    assert found is not None
    return {**found, **more}


@pytest.fixture(scope="module")
def server(module_server):
    return module_server(token_env="COOPER_TEST_TOKEN", max_body_mb=1.0, max_rows=40, max_characters=500)


@pytest.fixture
def post(server):
    headers = {"Authorization": "Bearer secret", "Content-Type": "application/json"}

    def post(path: str, **content: Any) -> tuple[int, str]:
        answer = httpx.post(server.url + path, headers=headers, timeout=60, **content)
        return answer.status_code, answer.json()["error"]

    return post


@pytest.mark.parametrize("token", [None, "wrong", "secre", "secrets", "sécret"])
def test_a_wrong_token_gets_nothing(server, token):
    headers = [] if token is None else [(b"Authorization", f"Bearer {token}".encode())]
    for path in ("/v1/info", "/metrics", "/v1/steps/1"):
        assert httpx.get(server.url + path, headers=headers).status_code == 401
    answer = httpx.post(server.url + "/v1/score", json=body(), headers=headers)
    assert answer.status_code == 401
    assert "Authorization: Bearer TOKEN" in answer.json()["error"]


def test_a_client_takes_the_token_from_the_environment(server, monkeypatch):
    monkeypatch.delenv("COOPER_TOKEN", raising=False)
    with RewardClient(server.url) as client, pytest.raises(RefusedError, match="set COOPER_TOKEN"):
        client.info()
    monkeypatch.setenv("COOPER_TOKEN", "secret")
    with RewardClient(server.url) as client:
        assert client.info()["last_step"] == 0


def test_the_token_is_taken_from_a_url_and_health_needs_none(server):
    assert httpx.get(server.url + "/v1/info", auth=("trainer", "secret")).status_code == 200
    assert httpx.get(server.url + "/v1/info", auth=("trainer", "wrong")).status_code == 401
    assert RewardClient(server.url, "secret").last_step == 0
    for path in ("/healthz", "/readyz", "/docs", "/openapi.json"):
        assert httpx.get(server.url + path).status_code == 200


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (b'{"groups": "\xff"}', 400, "not UTF-8"),
        ('{"groups": "ä"}'.encode("utf-16"), 400, "not UTF-8"),
        (b'{"groups": [}', 400, "not JSON"),
        (b'{"groups": [], "groups": []}', 400, "appears twice"),
        (b'{"step": NaN}', 400, "NaN is not valid JSON"),
        (b"[" * 100_000, 400, "nested too deeply"),
        (b"[]", 422, "the body: "),
        (b"{}", 422, "groups: Field required"),
        (b'{"groups": []}', 422, "there are none to score"),
        (b'{"groups": [{"id": "g", "problem": {"id": "p", "question": "q"}, "completions": []}]}', 422, "answer"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(post, content, status, words):
    found, error = post("/v1/score", content=content)
    assert (found, words in error) == (status, True), error


def test_a_byte_order_mark_before_a_body_is_left_out(server):
    """Some editors write one in front of every file."""
    headers = {"Authorization": "Bearer secret", "Content-Type": "application/json"}
    content = json.dumps(body(step=None, train=False)).encode("utf-8-sig")
    assert httpx.post(server.url + "/v1/score", content=content, headers=headers, timeout=60).status_code == 200


def test_what_does_not_fit_is_named(post):
    for change, words in (
        ({"stpe": 1}, "stpe: Extra inputs"),
        ({"step": "1"}, "step: Input should be a valid integer"),
        ({"step": 0}, "step: Input should be greater than or equal to 1"),
        ({"phase": "test"}, "phase: Input should be 'train' or 'eval'"),
    ):
        status, error = post("/v1/score", json=body(**change))
        assert (status, words in error) == (422, True), error
    assert post("/v1/score?commit=often", json=body(step=None))[0] == 422
    assert post("/v1/score?commit=count:4", json=body(step=1))[0] == 422


def test_a_group_without_answers_is_named(post):
    given = body()
    given["groups"][1]["completions"] = []
    assert post("/v1/score", json=given) == (422, "group g11: it has no completions; omit groups without answers")


def test_a_rule_that_does_not_exist_spoils_no_other_request(post):
    given = body()
    given["groups"][0]["problem"]["rule"] = "numerics"
    status, error = post("/v1/score", json=given)
    assert (status, "did you mean 'numeric'?" in error) == (422, True), error


def test_too_much_at_once_is_refused(post):
    many = body()
    many["groups"][0]["completions"] *= 20
    assert post("/v1/score", json=many)[0] == 413
    long = body()
    long["groups"][0]["completions"][0]["text"] = "1" * 501
    status, error = post("/v1/score", json=long)
    assert (status, "a text of 501 characters" in error) == (413, True), error


def test_a_huge_body_is_refused_before_it_is_read(server):
    """200 MB are announced and never sent: the answer comes all the same."""
    host, port = server.url.removeprefix("http://").split(":")
    head = "POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer secret\r\n"
    for rest in ("Content-Length: 200000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n200000\r\n" + "x" * 2**21):
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall((head + rest).encode())
            assert b" 413 " in connection.recv(4096).split(b"\r\n")[0]


def test_the_wrong_path_and_an_unknown_step_say_so(server, post):
    headers = {"Authorization": "Bearer secret"}
    assert "see /docs" in httpx.post(server.url + "/v2/score", headers=headers).json()["error"]
    assert httpx.get(server.url + "/v1/score", headers=headers).status_code == 405
    answer = httpx.get(server.url + "/v1/steps/77", headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (
        404,
        "step 77: nothing was scored in it; the server is at step 0",
    )
    assert post("/v1/steps/77/commit", json={})[0] == 409


@pytest.fixture(scope="module")
def slow_server(module_server):
    return module_server(name="slow", reward=SLOW, max_pending=2, batch_rows=0)


@pytest.mark.slow
def test_more_than_the_server_can_hold_is_put_off(slow_server):
    server = slow_server
    with httpx.Client(timeout=60) as client:
        answers: list[httpx.Response] = []
        threads = [
            threading.Thread(
                target=lambda n=n: answers.append(server.post("/v1/score", body(10 * n, step=None, train=False)))
            )
            for n in range(1, 7)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        statuses = sorted(answer.status_code for answer in answers)
        assert statuses.count(200) >= 2
        assert 429 in statuses
        busy = next(answer for answer in answers if answer.status_code == 429)
        assert busy.headers["Retry-After"] == "1"
        assert "2 requests are under way" in busy.json()["error"]
        assert client.get(server.url + "/healthz").status_code == 200
    clients = [server.client() for _ in range(6)]  # which come back later
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda c=c: results.append(c.score([group(5)], train=False).version)) for c in clients
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [0] * 6


def test_a_function_that_fails_is_named_and_counts_nothing(slow_server):
    given = body(80, step=None)
    given["groups"][0]["completions"][0]["text"] = "boom"
    answer = slow_server.post("/v1/score", given)
    assert (answer.status_code, answer.json()) == (500, {"error": "ZeroDivisionError: this answer"})
    told = slow_server.output()
    assert told.count("Traceback") == told.count("ZeroDivisionError: this answer") == 1
    assert slow_server.get("/v1/info").json()["open"] is None
    assert slow_server.get("/readyz").status_code == 200


def test_requests_under_way_are_answered_before_the_end(slow_server):
    statuses: list[int] = []
    asking = threading.Thread(
        target=lambda: statuses.append(slow_server.post("/v1/score", body(70, step=None)).status_code)
    )
    asking.start()
    while "cooper_requests_pending 1.0" not in slow_server.get("/metrics").text:
        pass
    assert slow_server.end() == 0
    asking.join()
    assert statuses == [200]
    slow_server.start()
    assert slow_server.get("/v1/info").json()["open"]["groups"] == 4  # what was answered is not forgotten


def test_a_client_says_what_is_wrong_in_the_servers_words(make_server):
    server = make_server(name="words")
    with server.client(early_s=0.1) as client:
        client.score(groups(10), step=2)
        with pytest.raises(UnavailableError, match="step 3 waits for step 2, which is scored but not committed"):
            client.score(groups(10), step=3)
        with pytest.raises(RefusedError, match="step 1 is behind step 2, which is under way") as refusal:
            client.score(groups(10), step=1)
        assert isinstance(refusal.value, InputError)
        assert refusal.value.status == 409
    with (
        RewardClient("http://127.0.0.1:9", timeout_s=0.1) as nobody,
        pytest.raises(UnavailableError, match=r"GET .*info"),
    ):
        _ = nobody.version


def test_the_page_describes_every_body(server):
    page = json.loads(httpx.get(server.url + "/openapi.json").text)
    posts = [path["post"] for path in page["paths"].values() if "post" in path]
    names = {post["requestBody"]["content"]["application/json"]["schema"]["$ref"].split("/")[-1] for post in posts}
    assert names <= page["components"]["schemas"].keys()
    assert {"ScoreBody", "CommitBody", "ClassifyBody"} <= names
    assert "GroupBody" in page["components"]["schemas"]
