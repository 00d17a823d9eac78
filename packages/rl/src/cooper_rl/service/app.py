"""The application: routes of our own, vLLM's classification, and errors as JSON."""

import asyncio
import time
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import generate_latest
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.responses import Response

from cooper_base import __version__
from cooper_base.errors import InputError
from cooper_rl.reward.scored import Scored, Updated
from cooper_rl.service import wire
from cooper_rl.service.config import CommitPolicy, ServeConfig, read_policy
from cooper_rl.service.requests import Refusal, ScoreAsk, check_limits
from cooper_rl.service.wire import read_body, reply
from cooper_rl.service.worker import Meters, Worker

LONGEST_WAIT_S = 60.0
"""Most seconds that a reply waits for the end of an update. It holds a place of `max_pending`; clients ask again."""
StepNumber = Annotated[int, Path(ge=0, lt=wire.LARGEST)]
Seconds = Annotated[float, Query(ge=0, allow_inf_nan=False)]


@dataclass
class Service:
    config: ServeConfig
    worker: Worker
    meters: Meters
    stopping: bool = False

    async def score(self, asks: list[ScoreAsk]) -> list[Scored]:
        """Score requests, perhaps in a batch with those of others. Raises the exception of the first that failed."""
        for ask in asks:
            check_limits(ask, self.config.serve)
        return list(await asyncio.gather(*(asyncio.wrap_future(self.worker.score(ask)) for ask in asks)))

    def policy(self, commit: str | None) -> CommitPolicy | None:
        """When to train on answers without a step. Raises Refusal (422) for an invalid rule."""
        text = commit or self.config.serve.commit
        try:
            return read_policy(text) if text else None
        except ValueError as error:
            raise Refusal(422, str(error)) from error

    def view(self, step: int) -> Updated:
        """The state of a step. Raises Refusal (404) for an unknown step."""
        training = self.worker.training
        if step in training.steps:
            return training.steps[step]
        if (opened := training.ledger.open_step) is not None and opened.number == step:
            return Updated(step, training.reward.version, state="open")
        why = "its results are not kept any more" if step <= training.reward.last_step else "nothing was scored in it"
        raise Refusal(404, f"step {step}: {why}; the server is at step {training.reward.last_step}")

    async def settled(self, step: int, wait_s: float) -> Updated:
        """`view` after the end of an update, or after `wait_s` seconds."""
        deadline = time.monotonic() + min(wait_s, LONGEST_WAIT_S)
        while (view := self.view(step)).state == "updating" and time.monotonic() < deadline and not self.stopping:
            await asyncio.sleep(0.02)
        return view

    def info(self) -> dict[str, Any]:
        training, opened = self.worker.training, self.worker.training.ledger.open_step
        limits = ("batch_rows", "max_pending", "max_pending_mb", "max_body_mb", "max_rows", "max_characters")
        return {
            "cooper": __version__,
            "run": training.run,
            "version": training.reward.version,
            "last_step": training.reward.last_step,
            "open": opened and {"step": opened.number, "groups": len(opened.groups), "answers": opened.rows},
            "checkpoints": training.history.checkpoints(),
            "history": training.digest,
            "reward_hacking": {"signs": training.signs, "since": training.alarm.since},
            "kind": self.config.kind,
            "reward_model": None if (model := self.config.loaded_model) is None else model.model,
            "learns": self.config.learns,
            "limits": {name: getattr(self.config.serve, name) for name in limits},
        }


BODIES: dict[str, type[wire.Body]] = {
    "/v1/score": wire.ScoreBody,
    "/v1/steps/{step}/commit": wire.CommitBody,
    "/v1/checkpoints": wire.CheckpointBody,
    "/v1/restore": wire.RestoreBody,
    "/classify": wire.ClassifyBody,
}
"""What each route reads, for the OpenAPI page."""


def build_app(service: Service) -> FastAPI:
    app = FastAPI(
        title="cooper serve",
        version=__version__,
        description="A reward model that learns.",
        redoc_url=None,
        exception_handlers=dict.fromkeys(
            (Refusal, InputError, RequestValidationError, HTTPException, Exception), _failed
        ),
    )
    add_training_routes(app, service)
    add_state_routes(app, service)
    add_classify_route(app, service)
    _describe_bodies(app)
    return app


def add_training_routes(app: FastAPI, service: Service) -> None:
    worker, training = service.worker, service.worker.training

    @app.post("/v1/score")
    async def score(request: Request, commit: str | None = None) -> Response:
        """Rewards of answers under the current version of the reward model."""
        body = await read_body(request, wire.ScoreBody)
        groups = wire.groups_of(body)
        if commit is not None and body.step is not None:
            raise Refusal(422, "commit: it is for answers without a step; leave out one of the two")
        partial = frozenset(partial_group.id for partial_group in body.groups if partial_group.partial)
        policy = service.policy(commit) if body.step is None else None
        (result,) = await service.score([ScoreAsk(groups, body.step, body.phase == "train", body.run, policy, partial)])
        return reply(wire.scores(result, groups))

    @app.post("/v1/steps/{step}/commit", status_code=202)
    async def commit(request: Request, step: StepNumber) -> Response:
        """Train on a step's answers. After the reply it will happen even if the server is killed."""
        body = await read_body(request, wire.CommitBody)
        begun = worker.commit(step, body.keep, body.expected, body.run)
        return reply(wire.step_view(await asyncio.wrap_future(begun), pairs=False), 202)

    @app.post("/v1/checkpoints")
    async def checkpoint(request: Request) -> Response:
        """Write a checkpoint of the state after the last commit."""
        body = await read_body(request, wire.CheckpointBody)
        return reply(await asyncio.wrap_future(worker.call(lambda: training.checkpoint(body.step, body.run))))

    @app.post("/v1/restore")
    async def restore(request: Request) -> Response:
        """Go back to the end of a step and forget all later ones."""
        body = await read_body(request, wire.RestoreBody)
        restored = worker.call(lambda: training.restore(body.step, body.history, body.run))
        return reply(await asyncio.wrap_future(restored))


def add_state_routes(app: FastAPI, service: Service) -> None:
    @app.get("/v1/steps/{step}")
    async def step(step: StepNumber, wait_s: Seconds = 0.0, pairs: bool = False) -> Response:
        """The state of a step; with `wait_s` the reply waits for the end of an update."""
        return reply(wire.step_view(await service.settled(step, wait_s), pairs))

    @app.get("/v1/info")
    async def info() -> Response:
        """The server's state and limits."""
        return reply(service.info())

    @app.get("/healthz")
    async def health() -> Response:
        """Whether the process is alive."""
        return reply({"alive": True})

    @app.get("/readyz")
    async def ready() -> Response:
        """Whether it can do its work."""
        why = service.worker.training.fault or ("the server is stopping" if service.stopping else None)
        return reply({"ready": why is None, "error": why}, 200 if why is None else 503)

    @app.get("/metrics")
    async def metrics() -> Response:
        """For Prometheus."""
        return Response(generate_latest(service.meters.registry), media_type="text/plain; version=0.0.4")


def add_classify_route(app: FastAPI, service: Service) -> None:
    """For clients that know neither groups nor steps; `?commit=count:1024` or `?commit=idle:5s` says when to train."""

    @app.post("/classify")
    async def classify(request: Request, commit: str | None = None) -> Response:
        """vLLM's classification; the inputs are JSON text."""
        body = await read_body(request, wire.ClassifyBody)
        texts = [body.input] if isinstance(body.input, str) else body.input
        rows = [wire.read_completion(text) for text in texts]
        results = await service.score(wire.asks_of(rows, service.policy(commit)))
        raw = body.use_activation is False
        values = [(result.logits if raw and result.logits else result.for_all())[0][0] for result in results]
        data = [{"index": i, "label": "LABEL_0", "probs": [value], "num_classes": 1} for i, value in enumerate(values)]
        name = body.model or "cooper"
        content = {"id": f"classify-{time.time_ns()}", "object": "list", "created": int(time.time()), "model": name}
        usage = {"prompt_tokens": 0, "total_tokens": 0, "completion_tokens": 0}
        return reply({**content, "data": data, "usage": usage})


def _describe_bodies(app: FastAPI) -> None:
    """Add the bodies to the OpenAPI page; FastAPI does not know them, because the routes read them."""
    schema = app.openapi()
    records: list[Any] = [(record, "validation") for record in BODIES.values()]
    _, definitions = models_json_schema(records, ref_template="#/components/schemas/{model}")
    schema.setdefault("components", {}).setdefault("schemas", {}).update(definitions["$defs"])
    for path, record in BODIES.items():
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{record.__name__}"}}}
        schema["paths"][path]["post"]["requestBody"] = {"content": content, "required": record is not wire.CommitBody}


def refused(refusal: Refusal) -> Response:
    response = reply({"error": str(refusal)}, refusal.status)
    response.headers.update(refusal.headers)
    return response


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, Refusal):
        return refused(error)
    if isinstance(error, InputError):
        return reply({"error": str(error)}, 422)
    if isinstance(error, RequestValidationError):
        issues = [f"{issue['loc'][-1]}: {issue['msg']}" for issue in error.errors()]
        return reply({"error": f"{request.method} {request.url.path[:200]}: {'; '.join(issues)}"}, 422)
    if isinstance(error, HTTPException):
        return reply({"error": f"{request.method} {request.url.path}: {error.detail}; see /docs"}, error.status_code)
    return reply({"error": f"{type(error).__name__}: {error}"}, 500)  # a fault of the server or of a user's function
