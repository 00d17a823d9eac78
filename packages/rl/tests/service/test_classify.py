"""Clients that know neither groups nor steps, over vLLM's classification."""

import json
import threading
import time

import pytest

from service.served import Served


@pytest.fixture(scope="module")
def server(module_server) -> Served:
    return module_server(batch_rows=512)


def label(number: int = 10, **more: str) -> str:
    return json.dumps({"question": f"{number - 1} + 1 = ?", "answer": str(number), **more})


def classify(server: Served, answers: list[str], number: int = 10, url: str = "/classify", **more: str) -> list[float]:
    """The rewards of these answers to one problem."""
    reply = server.post(url, {"input": [label(number, completion=answer, **more) for answer in answers]})
    assert reply.status_code == 200, reply.text
    return [row["probs"][0] for row in reply.json()["data"]]


def opened(server: Served) -> dict:
    return server.get("/v1/info").json()["open"]


def commit(server: Served) -> dict:
    step = opened(server)["step"]
    server.post(f"/v1/steps/{step}/commit")
    return server.get(f"/v1/steps/{step}", params={"wait_s": 60, "pairs": True}).json()


def test_the_reward_model_is_trained_answer_by_answer(server):
    (right,) = classify(server, ["it is 10"])
    assert classify(server, ["it is 17", "it is 10"])[1] == right
    assert opened(server) == {"step": 1, "groups": 1, "answers": 2}
    classify(server, ["it is 12"], number=12, split="test")
    assert opened(server)["answers"] == 2  # an evaluation
    done = commit(server)
    assert (done["state"], done["version"]) == ("done", 1)
    assert {pair["positive"] for pair in done["pairs"]} == {"it is 10"}
    assert classify(server, ["it is 10"], split="test") != [right]


def test_equal_answers_of_a_request_count_each_and_its_repeat_adds_none(server):
    for _ in range(2):  # the trainer did not hear the first reply
        classify(server, ["it is 10", "it is 17", "it is 17", "it is 17"])
        assert opened(server)["answers"] == 4
    assert len(commit(server)["pairs"]) > 0


def test_clients_of_classify_can_name_equal_answers(server):
    for name in ("a", "b", "a"):
        answer = server.post("/classify", {"input": label(completion="it is 17", id=name)})
        assert answer.status_code == 200, answer.text
    assert opened(server)["answers"] == 2
    other = server.post("/classify", {"input": label(completion="it is 18", id="a")})
    assert (other.status_code, "other content" in other.json()["error"]) == (409, True)
    commit(server)


def test_classify_answers_as_vllm_does(server):
    texts = [label(completion=text, split="eval") for text in ("it is 10", "it is 11")]
    found = server.post("/classify", {"model": "rm", "input": texts}).json()
    assert [(one["index"], one["label"], one["num_classes"]) for one in found["data"]] == [
        (0, "LABEL_0", 1),
        (1, "LABEL_0", 1),
    ]
    assert (found["object"], found["model"]) == ("list", "rm")
    (probability,) = found["data"][0]["probs"]
    assert 0 < probability < 1
    raw = server.post("/classify", {"input": texts[0], "use_activation": False}).json()
    assert raw["data"][0]["probs"] != [probability]
    assert server.get("/v1/info").json()["open"] is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the text alone", 'input: write it as JSON text {"question"'),
        ('{"answer": "1", "completion": "1"}', "question: Field required"),
        ('{"question": "1"}', '"completion": …'),
    ],
)
def test_an_input_without_question_and_completion_is_refused_with_the_remedy(server, text, words):
    answer = server.post("/classify", {"input": text})
    assert (answer.status_code, words in answer.json()["error"]) == (422, True), answer.text


def test_a_number_of_answers_or_a_pause_commits(server):
    before = server.get("/v1/info").json()["last_step"]
    url = "/classify?commit=count:4"
    for text in ("it is 10", "it is 17", "it is 17"):
        classify(server, [text], url=url)
    assert opened(server)["answers"] == 2  # three came, two of them the same
    classify(server, ["10"], url=url)
    _until(lambda: server.get("/v1/info").json()["last_step"] == before + 1)
    classify(server, ["it is 10", "it is 17"], url="/classify?commit=idle:0.3s")
    assert opened(server)["step"] == before + 2
    _until(lambda: server.get("/v1/info").json()["last_step"] == before + 2)


def test_requests_that_come_together_are_scored_together_and_counted(server):
    def metric(name: str) -> float:
        lines = [line for line in server.get("/metrics").text.splitlines() if line.startswith(name + " ")]
        return float(lines[0].split()[-1]) if lines else 0.0  # a label has no line before it is first counted

    before = metric("cooper_batch_rows_count"), metric('cooper_answers_scored_total{phase="eval"}')
    replies: dict[int, float] = {}
    begin = threading.Barrier(16)

    def ask(number: int) -> None:
        begin.wait()
        replies[number] = classify(server, [f"it is {number}"], number=number, split="test")[0]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(10, 26)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = {number: classify(server, [f"it is {number}"], number=number, split="test")[0] for number in replies}
    assert replies == pytest.approx(alone, abs=1e-5)
    assert metric("cooper_batch_rows_count") - before[0] < 16 + 16
    assert metric('cooper_answers_scored_total{phase="eval"}') - before[1] == 32
    assert metric('cooper_requests_total{method="POST",path="/classify",status="200"}') > 0
    assert metric("cooper_version") == server.get("/v1/info").json()["version"]


def test_rewards_that_compare_answers_need_whole_groups(make_server):
    server = make_server(reward={"kind": "cooper_model", "rewards": [{"kind": "hybrid"}]})
    answer = server.post("/classify", {"input": label(completion="it is 10")})
    assert (answer.status_code, "send whole groups" in answer.json()["error"]) == (422, True)


def _until(fact) -> None:
    deadline = time.monotonic() + 60
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.05)
