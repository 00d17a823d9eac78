"""Servers of a tiny reward model."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cooper_rl import CooperReward
from cooper_rl.service.config import ServeConfig
from service.answered import CORRUPTER
from service.served import Served


@pytest.fixture(scope="session")
def reward_settings(tiny_models) -> dict[str, Any]:
    """The reward's part of a configuration."""
    return {
        "kind": "cooper_model",
        "threads": 1,
        "reward_model": {"model": str(tiny_models / "reward_model"), "learning_rate": 1e-2, "max_input_tokens": 160},
        "cooptimization": {"assistant": CORRUPTER, "replay": {"pairs_per_step": 3}},
    }


@pytest.fixture
def make_server(reward_settings, tmp_path) -> Iterator[Callable[..., Served]]:
    """Starts a server; keyword arguments are settings of its section `serve`."""
    yield from _maker(reward_settings, tmp_path)


@pytest.fixture(scope="module")
def module_server(reward_settings, tmp_path_factory) -> Iterator[Callable[..., Served]]:
    """`make_server` for servers that the tests of a module share."""
    yield from _maker(reward_settings, tmp_path_factory.mktemp("servers"))


def _maker(reward_settings: dict[str, Any], folder: Path) -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def make(name: str = "one", reward: dict[str, Any] | None = None, script: str = "", **serve: Any) -> Served:
        settings = {**reward_settings, **(reward or {}), "serve": serve}
        made.append(Served(folder / name, settings, script).start())
        return made[-1]

    yield make
    for server in made:
        server.end(signal.SIGKILL)


@pytest.fixture
def in_process(reward_settings) -> Iterator[CooperReward]:
    """The same reward in this process."""
    with CooperReward.from_config(ServeConfig.model_validate(reward_settings)) as reward:
        yield reward


def state_of(folder: Path, step: int) -> dict[str, Any]:
    """Everything that a checkpoint says: its files but for the journal's numbers, weights and optimizer included."""
    files = json.loads((folder / "checkpoints" / f"{step:06d}" / "manifest.json").read_text())["files"]
    return {name: value["sha256"] for name, value in files.items()}
