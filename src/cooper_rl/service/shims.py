"""Formats of other trainers: OpenRLHF's and slime's remote rewards, vLLM's `/classify`.

They contain no question, reference answer, group or step. Question and reference are JSON text in the label (or, for
`/classify`, in the input); answers with the same question and reference form a group, which the commit closes. An
answer has no id either: its text names it and, among equal answers of a request, its number. So a repeated request
adds nothing, and equal answers of a group count each if they come in one request.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field
from starlette.responses import Response

from cooper_rl.data.problem import Problem
from cooper_rl.rollouts import Answer, AnswerGroup
from cooper_rl.service.book import Asked, ScoreAsk, ScoreReply
from cooper_rl.service.config import CommitPolicy
from cooper_rl.service.refusal import Refusal
from cooper_rl.service.service import Service
from cooper_rl.service.wire import Body, finite, first_logits, parse_body, read_body, reply


class Label(Body):
    """The JSON text that a data set provides as its label."""

    question: str
    answer: str
    split: str = "train"
    """Any other value than `train` is an evaluation."""
    solution: str | None = None
    rule: str | None = None


class Completion(Label):
    """An input of `/classify`: a label with the answer."""

    completion: str
    stopped: bool = True
    id: str | None = None
    """Its name in the group, for clients that send equal answers in several requests."""


class OpenRLHFBody(Body):
    """`POST /get_reward`: `query` is the prompt followed by the answer."""

    model_config = ConfigDict(extra="ignore")

    query: list[str]
    prompts: list[str]
    labels: list[str]


class SlimeBody(Body):
    """`POST /remote_rm`."""

    model_config = ConfigDict(extra="ignore")

    prompt: Any = None
    response: str
    label: str | Label


class ClassifyBody(Body):
    """`POST /classify`."""

    model_config = ConfigDict(extra="ignore")

    model: str | None = None
    input: str | list[str] = Field()
    use_activation: bool | None = True
    """False asks for the logit, as in vLLM."""


def openrlhf_answers(body: OpenRLHFBody) -> list[tuple[Label, Answer]]:
    """Raises Refusal (422) for columns of different lengths or labels that are not JSON labels."""
    if not len(body.query) == len(body.prompts) == len(body.labels):
        raise Refusal(422, f"{len(body.query)} query, {len(body.prompts)} prompts, {len(body.labels)} labels")
    rows = zip(body.query, body.prompts, body.labels, strict=True)
    return [(read_label(label), Answer(query.removeprefix(prompt))) for query, prompt, label in rows]


def slime_answers(body: SlimeBody) -> list[tuple[Label, Answer]]:
    """Raises Refusal (422) for a label that is not a JSON label."""
    label = body.label if isinstance(body.label, Label) else read_label(body.label)
    return [(label, Answer(body.response))]


def classify_answers(body: ClassifyBody) -> list[tuple[Label, Answer]]:
    """Raises Refusal (422) for an input without a reference answer."""
    texts = [body.input] if isinstance(body.input, str) else body.input
    found = [_read(text, Completion, "input") for text in texts]
    return [(one, Answer(one.completion, one.stopped, one.id)) for one in found]


def read_label(text: str) -> Label:
    """Raises Refusal (422) for anything but a JSON label."""
    return _read(text, Label, "label")


def asks_of(answers: Sequence[tuple[Label, Answer]], policy: CommitPolicy | None) -> list[ScoreAsk]:
    """One request to the training for each answer of one HTTP request."""
    equal: Counter[tuple[str, str]] = Counter()
    asks = []
    for label, answer in answers:
        group, content = _name([label.question, label.answer]), _name([answer.text, str(answer.stopped)])
        name = answer.id or (f"{content}-{equal[group, content]}" if equal[group, content] else content)
        equal[group, content] += answer.id is None
        problem = Problem(group, label.question, label.answer, label.solution, rule=label.rule)
        asked = Asked(AnswerGroup(group, problem, [Answer(answer.text, answer.stopped, name)]), partial=True)
        asks.append(ScoreAsk([asked], train=label.split == "train", policy=policy))
    return asks


def shim_routes(service: Service) -> APIRouter:
    """`?commit=count:1024` or `?commit=idle:5s` in the URL says when to train."""
    routes = APIRouter()

    async def score(answers: list[tuple[Label, Answer]], commit: str | None) -> list[ScoreReply]:
        return await service.score(asks_of(answers, service.policy(commit)))

    @routes.post("/get_reward")
    async def openrlhf(request: Request, commit: str | None = None) -> Response:
        """OpenRLHF's remote reward."""
        found = await score(openrlhf_answers(await read_body(request, OpenRLHFBody)), commit)
        rewards = [_reward(one) for one in found]
        logs = {
            "correct": [float(one.groups[0].verdicts[0] == "correct") for one in found],
            "reward_model_version": [float(one.version) for one in found],
        }
        return reply({"rewards": rewards, "scores": rewards, "extra_logs": logs})

    @routes.post("/remote_rm")
    async def slime(request: Request, commit: str | None = None) -> Response:
        """slime's remote reward: a bare number."""
        (found,) = await score(slime_answers(await read_body(request, SlimeBody)), commit)
        return reply(_reward(found))

    @routes.post("/classify")
    async def classify(request: Request, commit: str | None = None) -> Response:
        """vLLM's classification; the inputs are JSON text."""
        body = await read_body(request, ClassifyBody)
        found = await score(classify_answers(body), commit)
        data = [_classified(i, one, body.use_activation is not False) for i, one in enumerate(found)]
        name = body.model or "cooper"
        content = {"id": f"classify-{time.time_ns()}", "object": "list", "created": int(time.time()), "model": name}
        usage = {"prompt_tokens": 0, "total_tokens": 0, "completion_tokens": 0}
        return reply({**content, "data": data, "usage": usage})

    return routes


def _read(text: str, record: type[Any], what: str) -> Any:
    try:
        return parse_body(text.encode(), record)
    except Refusal as error:
        example = '{"question": …, "answer": …, "split": "train"}'
        if record is Completion:
            example = example.replace('"split"', '"completion": …, "split"')
        raise Refusal(422, f"{what}: write it as JSON text {example} ({error})") from error


def _name(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:20]


def _reward(found: ScoreReply) -> float | None:
    return finite(found.groups[0].rewards[0])


def _classified(index: int, found: ScoreReply, activated: bool) -> dict[str, Any]:
    logits = first_logits(found.groups[0])
    value = _reward(found) if activated or logits is None else finite(logits[0])
    return {"index": index, "label": "LABEL_0", "probs": [value], "num_classes": 1}
