"""Routes for other trainers' own reward formats."""

import time
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from cooper_rl.rollouts.answers import Answer
from cooper_rl.service.asks import ScoreReply
from cooper_rl.service.bodies import read_body
from cooper_rl.service.replies import finite, first_logits, reply
from cooper_rl.service.service import Service
from cooper_rl.service.shims import (
    ClassifyBody,
    Label,
    OpenRLHFBody,
    SlimeBody,
    ask_of,
    classify_answers,
    openrlhf_answers,
    slime_answers,
)


def shim_routes(service: Service) -> APIRouter:
    """`?commit=count:1024` or `?commit=idle:5s` in the URL says when to train."""
    routes = APIRouter()

    async def score(answers: list[tuple[Label, Answer]], commit: str | None) -> list[ScoreReply]:
        policy = service.policy(commit)
        return await service.score([ask_of(label, answer, policy) for label, answer in answers])

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


def _reward(found: ScoreReply) -> float | None:
    return finite(found.groups[0].rewards[0])


def _classified(index: int, found: ScoreReply, activated: bool) -> dict[str, Any]:
    logits = first_logits(found.groups[0])
    value = _reward(found) if activated or logits is None else finite(logits[0])
    return {"index": index, "label": "LABEL_0", "probs": [value], "num_classes": 1}
