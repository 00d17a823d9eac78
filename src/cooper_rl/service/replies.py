"""Replies as JSON. NaN and infinity become null, because JSON lacks them."""

import json
import math
from dataclasses import asdict
from typing import Any

from starlette.responses import Response

from cooper_rl.engines.base import Metrics
from cooper_rl.service.asks import ScoreReply, StepView
from cooper_rl.service.book import ScoredGroup


def reply(content: Any, status: int = 200) -> Response:
    """Floats are written with all their digits."""
    return Response(json.dumps(content, allow_nan=False), status, media_type="application/json")


def scores(found: ScoreReply) -> dict[str, Any]:
    """The reply to `/v1/score`."""
    return {
        "step": found.step,
        "version": found.version,
        "groups": [_group(one) for one in found.groups],
        "metrics": _metrics(found.metrics),
    }


def step_view(view: StepView, pairs: bool) -> dict[str, Any]:
    """The state of a step, with the pairs it was trained on if `pairs`."""
    content = {
        "step": view.step,
        "state": view.state,
        "version": view.version,
        "metrics": _metrics(view.metrics),
        "error": view.error,
    }
    if pairs:
        content["pairs"] = [{key: finite(value) for key, value in asdict(pair).items()} for pair in view.pairs]
    return content


def finite(value: Any) -> Any:
    """None for NaN and the infinities."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def first_logits(group: ScoredGroup) -> list[float] | None:
    """Logits of the reward model that learns, or else of the first one used."""
    return next(iter(group.logits.values()), None)


def _group(scored: ScoredGroup) -> dict[str, Any]:
    logits = first_logits(scored)
    return {
        "id": scored.group.id,
        "rewards": [finite(reward) for reward in scored.rewards],
        "logits": None if logits is None else [finite(logit) for logit in logits],
        "verdicts": scored.verdicts,
    }


def _metrics(metrics: Metrics) -> dict[str, float | None]:
    return {name: finite(value) for name, value in metrics.items()}
