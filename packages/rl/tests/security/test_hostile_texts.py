"""Completions, references and questions that stall a pattern or fill memory: the server and the run go on."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import uuid4

import httpx
import psutil
import pytest
import yaml

from cooper_audit.run.run_record import read_metrics
from cooper_lab.arithmetic.arms import ASSETS
from cooper_rl import Answer, AnswerGroup, Problem
from cooper_rl.reward.scored import Scored
from cooper_rl.service.client import RefusedError
from planted import EXPONENTIAL, EXPONENTIAL_ON_SEVENS, STALLS, planted
from service.served import Served

pytestmark = pytest.mark.slow


@dataclass
class Watched:
    """What a server did while it was under attack."""

    seconds: float
    """Of the attack."""
    slowest_s: float = 0.0
    """The longest reply of /healthz meanwhile."""
    peak_mib: float = 0.0
    """The most memory that the server and its processes held."""


def watched(server: Served, attack: Callable[[], None]) -> Watched:
    thread, begun = threading.Thread(target=attack), time.monotonic()
    seen = Watched(0.0)
    family = [psutil.Process(server.pid)]
    thread.start()
    while thread.is_alive():
        asked = time.monotonic()
        assert httpx.get(server.url + "/healthz", timeout=60).status_code == 200
        seen.slowest_s = max(seen.slowest_s, time.monotonic() - asked)
        family = [family[0], *family[0].children(recursive=True)]
        seen.peak_mib = max(seen.peak_mib, sum(map(_held, family)) / 2**20)
        time.sleep(0.02)
    thread.join()
    seen.seconds = time.monotonic() - begun
    return seen


def _held(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.NoSuchProcess:
        return 0


def group(texts: Sequence[str], problem: Problem) -> AnswerGroup:
    return AnswerGroup("g", problem, [Answer(text, id=str(place)) for place, text in enumerate(texts)])


def sent(server: Served, texts: Sequence[str], problem: Problem) -> None:
    """One request of a training step, whose verdicts come first. Questions and references too long for the reward
    model are refused after them."""
    with suppress(RefusedError):
        server.client().score([replace(group(texts, problem), id=str(uuid4()))])


PROBLEM = Problem("p", "5 + 7 = ?", "12")


def test_a_pattern_that_nobody_noticed_stalls_neither_the_server_nor_its_end(make_server):
    server = make_server(script=planted(EXPONENTIAL))
    texts = [r"\boxed{12}", STALLS, r"\boxed{13}", STALLS]
    replies = []
    seen = watched(server, lambda: replies.append(server.client().score([group(texts, PROBLEM)], train=False)))
    assert replies[0].verdicts == [["correct", "timeout", "wrong", "timeout"]]
    assert seen.slowest_s < 2

    body = {"phase": "eval", "groups": [{"id": "g", "problem": {"question": "?", "answer": "12"}}]}
    body["groups"][0]["completions"] = [{"text": f"{STALLS} {number}"} for number in range(30)]
    threading.Thread(target=_swallow, args=(server, body), daemon=True).start()
    time.sleep(2)
    begun = time.monotonic()
    server.end(signal.SIGTERM)
    assert time.monotonic() - begun < 60


def _swallow(server: Served, body: dict) -> None:
    with suppress(httpx.TransportError):
        server.post("/v1/score", body)


def _settings(folder) -> dict:
    problems = {"source": "arithmetic", "limit": 64, "prompt": {"template": "{question}\n"}}
    return {
        "kind": "rule",
        "output_dir": str(folder),
        "threads": 1,
        "steps": 4,
        "problems_per_step": 4,
        "policy": {"model": str(ASSETS / "policy"), "learning_rate": 1e-6},
        "problems": problems,
        "rollout": {"n": 8, "max_tokens": 40},
        "checkpoint": {"every": 0},
    }


@pytest.mark.parametrize("steps", [3, 1000])
def test_a_pattern_that_nobody_noticed_stalls_neither_a_run_nor_its_end(tmp_path, steps):
    (tmp_path / "sitecustomize.py").write_text(planted(EXPONENTIAL_ON_SEVENS))
    (tmp_path / "run.yaml").write_text(yaml.safe_dump({**_settings(tmp_path), "steps": steps}))
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = "from cooper_base.cli.main import app; app()"
    run = subprocess.Popen(
        [sys.executable, "-c", command, "train", str(tmp_path / "run.yaml")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    if steps == 3:
        assert run.wait(400) == 0
        rows = read_metrics(tmp_path / "run")
        assert len(rows) == 3
        assert sum(row["rule/timeout"] for row in rows) > 0
        return
    while run.poll() is None and not read_metrics(tmp_path / "run"):
        time.sleep(0.1)
    time.sleep(0.5)
    run.send_signal(signal.SIGTERM)
    assert run.wait(120) == 130


REPEATED = {
    "tool calls": "<tool_call>{}" * 15_000,
    "tool replies": "<tool_response>" * 13_000,
    "open braces": "{" * 190_000,
    "boxes": r"\boxed{" * 27_000,
    "new lines": "\n" * 190_000,
    "blanks": " " * 190_000,
    "marks": "5" + "!" * 190_000,
    "powers": "5 cm" + "^2" * 90_000,
    "thoughts": "<think>" * 27_000,
}


@pytest.fixture(scope="module")
def server(module_server):
    return module_server(name="texts")


@pytest.mark.parametrize("rule", ["maths", "choice", "exact", "numeric"])
@pytest.mark.parametrize("place", ["completion", "answer", "question", "metadata"])
def test_repetitive_texts_do_not_hold_the_server(server, rule, place):
    def attack() -> None:
        for text in REPEATED.values():
            problem = replace(PROBLEM, rule=rule)
            texts = ["The answer is 12", text if place == "completion" else "The answer is 13"]
            if place == "metadata":
                problem = replace(problem, metadata={"options": [text, "12"]})
            elif place != "completion":
                problem = replace(problem, **{place: text})
            sent(server, texts, problem)

    seen = watched(server, attack)
    print(f"{rule}, {place}: {seen}")  # noqa: T201 - for the table, with `pytest -s`
    assert seen.slowest_s < 2


LONG = "}" * 150_000
"""A token each. Of opening braces, a body has a limit: they may be values of its JSON."""


def family_mib(server: Served) -> float:
    process = psutil.Process(server.pid)
    return sum(map(_held, [process, *process.children(recursive=True)])) / 2**20


def refused(server: Served, texts: Sequence[str], field: str) -> bool:
    """Whether a request with these texts in problems is refused because they leave the reward model no room."""
    answers = [{"text": "12"}, {"text": "13"}]
    problems = [{"id": "p", "question": "5 + 7 = ?", "answer": "12", "rule": "exact"} | {field: text} for text in texts]
    groups = [{"id": str(i), "problem": one, "completions": answers} for i, one in enumerate(problems)]
    reply = server.post("/v1/score", {"groups": groups})
    return reply.status_code == 422 and "leaves no room for a completion" in reply.text


@pytest.mark.parametrize("field", ["question", "answer"])
def test_forty_refused_requests_leave_no_memory_behind(make_server, field):
    """When exceptions kept their frames, each request left its 45 to 60 MiB."""
    server = make_server()
    assert refused(server, [LONG], field)
    before = family_mib(server)
    assert all(refused(server, [LONG], field) for _ in range(40))
    growth = family_mib(server) - before
    print(f"40 refused, {field}: {growth:.0f} MiB more than the {before:.0f} after the first")  # noqa: T201 - the table
    assert growth < 100


def test_the_longest_references_in_the_largest_body_are_tokenized_a_few_at_a_time(make_server):
    """200 references of 150 KB."""
    server = make_server()
    texts, before = [f"{number:03}{LONG}" for number in range(200)], family_mib(server)
    replies: list[bool] = []
    seen = watched(server, lambda: replies.append(refused(server, texts, "answer")))
    print(f"200 references: {before:.0f} MiB before, {seen}")  # noqa: T201 - for the table
    assert replies == [True]
    assert seen.slowest_s < 2
    assert seen.peak_mib - before < 700


def test_one_request_has_one_budget_of_time_for_its_verdicts(make_server):
    """150 answers that each use up the time of a verdict took a minute and a half of CPU time."""
    server = make_server(script=planted(EXPONENTIAL), max_verify_s=2.0)
    texts = [r"\boxed{12}", *(f"{STALLS} {number}" for number in range(150))]
    replies: list[Scored] = []
    client = server.client(timeout_s=120.0)
    seen = watched(server, lambda: replies.append(client.score([group(texts, PROBLEM)], train=False)))
    print(f"150 stalling answers: {seen}")  # noqa: T201 - for the table
    assert replies[0].verdicts == [["correct", *["timeout"] * 150]]
    assert seen.slowest_s < 2
    assert seen.seconds < 60
    begun = time.monotonic()
    assert server.client().score([group([r"\boxed{12}"], PROBLEM)], train=False).verdicts == [["correct"]]
    assert time.monotonic() - begun < 20
    assert 'cooper_verdicts_total{verdict="timeout"} 150.0' in httpx.get(server.url + "/metrics").text
    assert "serve.max_verify_s" in server.output()


@pytest.mark.parametrize("rule", ["maths", "exact"])
def test_references_that_fill_a_body_are_refused_and_the_next_request_is_served(make_server, rule):
    server = make_server()
    answers = [{"text": "12"}, {"text": "13"}]
    problems = [
        {"id": "p", "question": "?", "answer": "}" * 190_000 + f"{number:03}", "rule": rule} for number in range(150)
    ]
    groups = [{"id": str(i), "problem": one, "completions": answers} for i, one in enumerate(problems)]
    replies: list[httpx.Response] = []
    seen = watched(server, lambda: replies.append(server.post("/v1/score", {"groups": groups})))
    print(f"150 references of braces, {rule}: {seen}")  # noqa: T201 - for the table
    assert replies[0].status_code == 422
    assert seen.slowest_s < 2
    assert seen.seconds < 90
    assert server.client().score([group([r"\boxed{12}"], PROBLEM)], train=False).verdicts == [["correct"]]
