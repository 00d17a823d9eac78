"""The application: routes of our own, those of other trainers, and errors as JSON."""

import logging
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.responses import Response

from cooper_rl import __version__
from cooper_rl.errors import InputError
from cooper_rl.service.book import Asked, ScoreAsk
from cooper_rl.service.refusal import Refusal
from cooper_rl.service.service import Service, result_of
from cooper_rl.service.shims import ClassifyBody, OpenRLHFBody, SlimeBody, shim_routes
from cooper_rl.service.wire import (
    Body,
    CheckpointBody,
    CommitBody,
    RestoreBody,
    ScoreBody,
    groups_of,
    read_body,
    reply,
    scores,
    step_view,
)

logger = logging.getLogger(__name__)

BODIES: dict[str, type[Body]] = {
    "/v1/score": ScoreBody,
    "/v1/steps/{step}/commit": CommitBody,
    "/v1/checkpoints": CheckpointBody,
    "/v1/restore": RestoreBody,
    "/get_reward": OpenRLHFBody,
    "/remote_rm": SlimeBody,
    "/classify": ClassifyBody,
}
"""What each route reads, for the OpenAPI page."""


def build_app(service: Service) -> FastAPI:
    """All routes of a server."""
    app = FastAPI(title="cooper serve", version=__version__, description="A reward model that learns.", redoc_url=None)
    app.include_router(training_routes(service))
    app.include_router(state_routes(service))
    app.include_router(shim_routes(service))
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(InputError, _bad_input)
    app.add_exception_handler(HTTPException, _no_such_route)
    app.add_exception_handler(Exception, _failed)
    _describe_bodies(app)
    return app


def training_routes(service: Service) -> APIRouter:
    """Score, commit, checkpoint, restore."""
    routes = APIRouter()
    worker, training = service.worker, service.worker.training

    @routes.post("/v1/score")
    async def score(request: Request, commit: str | None = None) -> Response:
        """Rewards of answers under the current version of the reward model."""
        body = await read_body(request, ScoreBody)
        groups = groups_of(body)
        if commit is not None and body.step is not None:
            raise Refusal(422, "commit: it is for answers without a step; leave out one of the two")
        asked = [Asked(group, one.partial) for group, one in zip(groups, body.groups, strict=True)]
        policy = service.policy(commit) if body.step is None else None
        (found,) = await service.score([ScoreAsk(asked, body.step, body.phase == "train", body.run, policy)])
        return reply(scores(found))

    @routes.post("/v1/steps/{step}/commit", status_code=202)
    async def commit(request: Request, step: int) -> Response:
        """Train on a step's answers. After the reply it will happen even if the server is killed."""
        body = await read_body(request, CommitBody)
        view = await result_of(worker.commit(step, body.keep, body.expected, body.run))
        return reply(step_view(view, pairs=False), 202)

    @routes.post("/v1/checkpoints")
    async def checkpoint(request: Request) -> Response:
        """Write a checkpoint of the state after the last commit."""
        body = await read_body(request, CheckpointBody)
        return reply(await result_of(worker.call(lambda: training.checkpoint(body.step, body.run))))

    @routes.post("/v1/restore")
    async def restore(request: Request) -> Response:
        """Go back to the end of a step and forget all later ones."""
        body = await read_body(request, RestoreBody)
        return reply(await result_of(worker.call(lambda: training.restore(body.step, body.history, body.run))))

    return routes


def state_routes(service: Service) -> APIRouter:
    """The state of steps and of the server."""
    routes = APIRouter()
    worker = service.worker

    @routes.get("/v1/steps/{step}")
    async def step(step: int, wait_s: Annotated[float, Query(ge=0)] = 0.0, pairs: bool = False) -> Response:
        """The state of a step; with `wait_s` the reply waits for the end of an update."""
        return reply(step_view(await service.settled(step, wait_s), pairs))

    @routes.get("/v1/info")
    async def info() -> Response:
        """The server's state and limits."""
        return reply(service.info())

    @routes.get("/healthz")
    async def health() -> Response:
        """Whether the process is alive."""
        return reply({"alive": True})

    @routes.get("/readyz")
    async def ready() -> Response:
        """Whether it can do its work."""
        why = worker.broken or ("the server is stopping" if service.stopping else None)
        return reply({"ready": why is None, "error": why}, 200 if why is None else 503)

    @routes.get("/metrics")
    async def metrics() -> Response:
        """For Prometheus."""
        return Response(service.meters.page(worker.training), media_type="text/plain; version=0.0.4")

    return routes


def _describe_bodies(app: FastAPI) -> None:
    """Add the bodies to the OpenAPI page; FastAPI does not know them, because the routes read them."""
    schema = app.openapi()
    records: list[Any] = [(record, "validation") for record in BODIES.values()]
    _, definitions = models_json_schema(records, ref_template="#/components/schemas/{model}")
    schema.setdefault("components", {}).setdefault("schemas", {}).update(definitions["$defs"])
    for path, record in BODIES.items():
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{record.__name__}"}}}
        schema["paths"][path]["post"]["requestBody"] = {"content": content, "required": record is not CommitBody}


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    found = reply({"error": str(error)}, error.status)
    found.headers.update(error.headers)
    return found


async def _bad_input(request: Request, error: Exception) -> Response:
    return reply({"error": str(error)}, 422)


async def _no_such_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return reply({"error": f"{request.method} {request.url.path}: {error.detail}; see /docs"}, error.status_code)


async def _failed(request: Request, error: Exception) -> Response:
    """A fault of the server or of a user's function."""
    return reply({"error": f"{type(error).__name__}: {error}"}, 500)
