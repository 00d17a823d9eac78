"""An assistant for the embedded world, behind a real server, that misbehaves in every way listed here."""

import json
from collections.abc import Callable
from typing import Any

from chat_server import HttpAnswer, completion
from cooper_base.data.problem import Problem
from cooper_lab.arithmetic.corruption import corrupt


def question_and_positive(request: dict[str, Any]) -> tuple[Problem, str]:
    """The question and the right solution in a rewriting request."""
    task = request["messages"][-1]["content"]
    question = task.split("Problem:\n")[1].split("\n\nCorrect final answer: ")[0]
    answer = task.split("Correct final answer: ")[1].split("\n\nCorrect solution:\n")[0]
    positive = task.split("\n\nCorrect solution:\n")[1].split("\n\nRewrite the solution")[0]
    return Problem("p", question, answer), positive


def wrong(request: dict[str, Any]) -> str:
    """The reply of a good assistant: a wrong solution."""
    problem, positive = question_and_positive(request)
    return corrupt(problem, positive, seed=request["seed"])


def right(request: dict[str, Any]) -> str:
    """The right answer in other words."""
    return f"Let us see.\n{question_and_positive(request)[1]}"


WEB_PAGE = "<html><body>502 Bad Gateway</body></html>"
DEEP = '{"choices": ' + "[" * 100_000
HALF_CHARACTER = '{"choices": [{"message": {"content": "\\ud800"}, "finish_reason": "stop"}]}'

Respond = Callable[[dict[str, Any]], HttpAnswer]

QUICK: dict[str, tuple[Respond, str]] = {
    "HTTP 401": (lambda r: HttpAnswer("{}", status=401), "failures_http_4xx"),
    "HTTP 404": (lambda r: HttpAnswer('{"error": {"message": "no such model"}}', status=404), "failures_http_4xx"),
    "HTTP 429": (lambda r: HttpAnswer("{}", status=429), "failures_http_429"),
    "HTTP 429, retry after 1 hour": (
        lambda r: HttpAnswer("{}", status=429, headers={"Retry-After": "3600"}),
        "failures_http_429",
    ),
    "HTTP 500": (lambda r: HttpAnswer("{}", status=500), "failures_http_5xx"),
    "HTTP 503 with an endless body": (lambda r: HttpAnswer("x" * 2**16, status=503, endless=True), "failures_http_5xx"),
    "hangs up": (lambda r: HttpAnswer("", hang_up=True), "failures_connection"),
    "hangs up in the body": (lambda r: HttpAnswer('{"choices": [', missing=100), "failures_connection"),
    "a broken gzip body": (
        lambda r: HttpAnswer("garbage", headers={"Content-Encoding": "gzip"}),
        "failures_connection",
    ),
    "truncated JSON": (lambda r: HttpAnswer(completion(wrong(r)).body[:-9]), "failures_malformed"),
    "a web page": (lambda r: HttpAnswer(WEB_PAGE), "failures_malformed"),
    "100,000 brackets": (lambda r: HttpAnswer(DEEP), "failures_malformed"),
    "a gigabyte": (lambda r: HttpAnswer("x" * 2**16, endless=True), "failures_oversized"),
    "empty text": (lambda r: completion(""), "failures_empty"),
    "no text": (lambda r: completion(None), "failures_empty"),
    "text cut at max_tokens": (lambda r: completion(wrong(r), finish_reason="length"), "failures_truncated"),
    "half a character": (lambda r: HttpAnswer(HALF_CHARACTER), "rejected_empty"),
    "only punctuation": (lambda r: completion("..."), "rejected_empty"),
    "a refusal": (lambda r: completion("I would rather not."), "rejected_unparsed"),
    "over-long text": (lambda r: completion("Hm. " * 50_000 + wrong(r)), "rejected_overlong"),
    "the positive itself": (lambda r: completion(question_and_positive(r)[1]), "rejected_equals_positive"),
    "the right answer": (lambda r: completion(right(r)), "rejected_correct"),
}
"""Fault -> (what the server sends, the metric `assistant/…` that counts it). These faults come without delay."""

SLOW: dict[str, tuple[Respond, str]] = {
    "accepts and never answers": (lambda r: completion(wrong(r), delay=60), "failures_timeout"),
    "a byte every 50 ms": (lambda r: completion(wrong(r), drip=0.05), "failures_timeout"),
    "HTTP 429, retry after 15 s": (
        lambda r: HttpAnswer("{}", status=429, headers={"Retry-After": "15"}),
        "failures_deadline",
    ),
}
"""Faults that end with a time limit."""


class FaultyAssistant:
    """Responds with `fault`, a key of QUICK or SLOW, or properly if it is None. Passes the check at the start."""

    def __init__(self, fault: str | None = None):
        self.fault = fault

    def __call__(self, request: dict[str, Any], number: int) -> HttpAnswer:
        if "Correct solution" not in json.dumps(request):
            return completion("ready")
        if self.fault is None:
            return completion(wrong(request))
        return (QUICK | SLOW)[self.fault][0](request)
