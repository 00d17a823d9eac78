"""An assistant's text becomes a negative only if the rule calls it wrong."""

import threading

import pytest

from chat_server import ChatServer, HttpAnswer, completion  # pyright: ignore[reportMissingImports]
from cooper_base.data.problem import Problem
from cooper_rl.reward.pairs.assistant import CorrupterAssistant, RewriteRequest, Rewrites
from cooper_rl.reward.pairs.chat_assistant import ChatAssistant
from cooper_rl.reward.pairs.rewriting_prompt import rewriting_chat
from cooper_verify.clients.chat import ChatClient, ChatConfig
from cooptimization_cases import answer_text, flip, unchanged_then_flip  # pyright: ignore[reportMissingImports]


def request(number: int) -> RewriteRequest:
    return RewriteRequest(Problem(str(number), f"What is {number}?", str(number)), answer_text(number), seed=number)


def rewrite(respond, requests, verifier, tries=3, **settings) -> tuple[Rewrites, ChatServer]:
    with ChatServer(respond) as server:
        config = ChatConfig(base_url=server.url, model="test", max_retries=0, timeout_s=0.3, **settings)
        assistant = ChatAssistant(ChatClient(config), verifier, tries)
        result = assistant.submit(requests).result(timeout=20)
        assistant.close()
    return result, server


def asked_number(body) -> int:
    task = body["messages"][-1]["content"]
    return int(task.split("Correct final answer: ")[1].split("\n")[0])


def wrong(body, number) -> HttpAnswer:
    return completion(answer_text(asked_number(body) + 1))


def test_wrong_solutions_are_accepted_in_the_order_of_the_requests(verifier):
    result, server = rewrite(wrong, [request(i) for i in (7, 20, 35)], verifier)
    assert result == Rewrites([answer_text(8), answer_text(21), answer_text(36)], {"attempts": 3, "accepted": 3})
    assert len(server.requests) == 3


UNFIT = {
    "the right answer in other words": (answer_text(7, work="Let us add."), "rejected_correct"),
    "the right answer in another form": (answer_text(7).replace("7", "7.0"), "rejected_correct"),
    "the positive itself": (answer_text(7) + " \n", "rejected_equals_positive"),
    "no answer": ("I would rather not.", "rejected_unparsed"),
    "a wrong answer in ten thousand words": ("Well. " * 10_000 + answer_text(8), "rejected_overlong"),
    "nothing inside a fence": ("```\n\n```", "rejected_empty"),
    "nothing": ("", "failures_empty"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_an_unfit_reply_is_counted_and_never_a_negative(name, verifier):
    text, kind = UNFIT[name]
    result, server = rewrite(lambda body, number: completion(text), [request(7)], verifier)
    assert result == Rewrites([None], {"attempts": 3, kind: 3})
    assert len(server.requests) == 3


FAULTS = {
    "500": (HttpAnswer("{}", status=500), "failures_http_5xx"),
    "slow": (completion(answer_text(8), delay=2), "failures_timeout"),
    "cut JSON": (HttpAnswer('{"choices": [{"mess'), "failures_malformed"),
    "cut text": (completion("Adding", finish_reason="length"), "failures_truncated"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_server_costs_negatives_and_nothing_else(name, verifier):
    fault, kind = FAULTS[name]
    requests = [request(7), request(20)]
    result, _ = rewrite(lambda b, n: fault if asked_number(b) == 7 else wrong(b, n), requests, verifier)
    attempts = 4 if kind == "failures_truncated" else 2  # a request that the client has retried is not tried again
    assert result == Rewrites([None, answer_text(21)], {"attempts": attempts, "accepted": 1, kind: attempts - 1})


def test_only_failed_requests_are_tried_again_with_another_seed(verifier):
    def second_time_lucky(body, number):
        first = sum(asked_number(earlier) == 7 for earlier in seen) == 1
        return completion(answer_text(7)) if asked_number(body) == 7 and first else wrong(body, number)

    seen, lock = [], threading.Lock()

    def respond(body, number):
        with lock:
            seen.append(body)
            return second_time_lucky(body, number)

    result, server = rewrite(respond, [request(7), request(20)], verifier)
    assert result.texts == [answer_text(8), answer_text(21)]
    assert sorted((asked_number(body), body["seed"]) for body in server.requests) == [(7, 7), (7, 8), (20, 20)]


def test_the_prompt_holds_the_question_the_answer_and_the_positive():
    task = rewriting_chat(Problem("1", "What is {x}?", "7/2"), "So {x} is 7/2")[-1]["content"]
    assert all(part in task for part in ("What is {x}?", "7/2", "So {x} is 7/2"))


def test_a_corrupter_replaces_the_assistant_and_is_tried_again_too(verifier):
    requests = [request(7), request(20)]
    assert CorrupterAssistant(flip, verifier).submit(requests).result(timeout=0).texts == [
        answer_text(8),
        answer_text(21),
    ]
    again = CorrupterAssistant(unchanged_then_flip, verifier, tries=2).submit(requests).result(timeout=0)
    assert again == Rewrites(
        [answer_text(9), answer_text(22)], {"attempts": 4, "rejected_equals_positive": 2, "accepted": 2}
    )


def test_a_corrupter_that_writes_nothing_gives_no_negative(verifier):
    result = CorrupterAssistant(lambda *arguments: " ", verifier).submit([request(7)]).result(timeout=0)
    assert result == Rewrites([None], {"attempts": 3, "failures_empty": 3})


def test_a_step_continues_at_its_deadline_without_the_missing_negatives(verifier, monkeypatch):
    monkeypatch.setattr("cooper_rl.reward.pairs.chat_assistant.STEP_TIMEOUT_S", 3.0)

    def hangs_on_7(body, number):
        return completion(answer_text(8), delay=60) if asked_number(body) == 7 else wrong(body, number)

    with ChatServer(hangs_on_7) as server:
        client = ChatClient(ChatConfig(base_url=server.url, model="test"))
        assistant = ChatAssistant(client, verifier)
        result = assistant.submit([request(7), request(20)]).result(timeout=30)
        assistant.close()
    assert result == Rewrites([None, answer_text(21)], {"attempts": 2, "accepted": 1, "failures_deadline": 1})
