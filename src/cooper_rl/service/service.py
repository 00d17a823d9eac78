"""The common part of all routes: from a request to the worker and back."""

import asyncio
from collections.abc import Awaitable
from concurrent.futures import Future
from typing import Any, TypeVar

from cooper_rl import __version__
from cooper_rl.service.book import ScoreAsk, ScoreReply, StepView
from cooper_rl.service.checks import check_limits, needs_whole_groups
from cooper_rl.service.config import CommitPolicy, ServeConfig, read_policy
from cooper_rl.service.meters import Meters
from cooper_rl.service.refusal import Refusal
from cooper_rl.service.worker import Worker

LONGEST_WAIT_S = 60.0
T = TypeVar("T")


class Service:
    """State shared by all routes."""

    def __init__(self, config: ServeConfig, worker: Worker, meters: Meters) -> None:
        self.config = config
        self.worker = worker
        self.meters = meters
        self.stopping = False
        self.needs_whole_groups = needs_whole_groups(config.rewards)

    async def score(self, asks: list[ScoreAsk]) -> list[ScoreReply]:
        """Score requests, perhaps in a batch with those of others. Raises the exception of the first that failed."""
        for ask in asks:
            check_limits(ask, self.config.serve)
            if self.needs_whole_groups and any(one.partial for one in ask.groups):
                raise Refusal(422, "this server's reward compares the answers of a group; send whole groups")
        return list(await asyncio.gather(*(result_of(self.worker.score(ask)) for ask in asks)))

    def policy(self, commit: str | None) -> CommitPolicy | None:
        """When to train on answers without a step. Raises Refusal (422) for an invalid rule."""
        text = commit or self.config.serve.commit
        try:
            return read_policy(text) if text else None
        except ValueError as error:
            raise Refusal(422, str(error)) from error

    def view(self, step: int) -> StepView:
        """The state of a step. Raises Refusal (404) for an unknown step."""
        training = self.worker.training
        if step in training.steps:
            return training.steps[step]
        if training.book is not None and training.book.step == step:
            return StepView(step, "open", training.reward.version)
        why = "its results are not kept any more" if step <= training.last_step else "nothing was scored in it"
        raise Refusal(404, f"step {step}: {why}; the server is at step {training.last_step}")

    async def settled(self, step: int, wait_s: float) -> StepView:
        """`view` after the end of an update, or after `wait_s` seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(wait_s, LONGEST_WAIT_S)
        while (view := self.view(step)).state == "updating" and loop.time() < deadline and not self.stopping:
            await asyncio.sleep(0.02)
        return view

    def info(self) -> dict[str, Any]:
        """The server's state and limits."""
        training, book = self.worker.training, self.worker.training.book
        limits = ("batch_rows", "max_pending", "max_pending_mb", "max_body_mb", "max_rows", "max_characters")
        return {
            "cooper": __version__,
            "run": training.run,
            "version": training.reward.version,
            "last_step": training.last_step,
            "open": None if book is None else {"step": book.step, "groups": len(book.groups), "answers": book.rows},
            "checkpoints": training.history.checkpoints(),
            "history": training.digest,
            "kind": self.config.kind,
            "reward_models": {name: model.model for name, model in self.config.used_models.items()},
            "learns": self.config.learning_model,
            "limits": {name: getattr(self.config.serve, name) for name in limits},
        }


def result_of(future: "Future[T]") -> Awaitable[T]:
    """The worker's result, for the event loop."""
    return asyncio.wrap_future(future)
