"""Servers of a tiny reward model."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cooper_rl import CooperReward
from cooper_rl.service.config import ServeConfig
from service.answered import CORRUPTER
from service.served import Served


@pytest.fixture
def reward_settings(tiny_models) -> dict[str, Any]:
    """The reward's part of a configuration."""
    return {
        "threads": 1,
        "reward_model": {"model": str(tiny_models / "reward_model"), "learning_rate": 1e-2, "max_input_tokens": 160},
        "cooptimization": {"assistant": CORRUPTER, "replay": {"pairs_per_step": 3, "capacity": 6}},
    }


@pytest.fixture
def make_server(reward_settings, tmp_path) -> Iterator[Callable[..., Served]]:
    """Starts a server; keyword arguments are settings of its section `serve`."""
    made: list[Served] = []

    def make(name: str = "one", reward: dict[str, Any] | None = None, **serve: Any) -> Served:
        settings = {**reward_settings, **(reward or {}), "serve": serve}
        made.append(Served(tmp_path / name, settings).start())
        return made[-1]

    yield make
    for server in made:
        server.__exit__()


@pytest.fixture
def in_process(reward_settings) -> Iterator[CooperReward]:
    """The same reward in this process."""
    with CooperReward.from_config(ServeConfig.model_validate(reward_settings)) as reward:
        yield reward


def state_of(folder: Path, step: int) -> dict[str, Any]:
    """Everything that a checkpoint says: its files but for the journal's numbers, weights and optimizer included."""
    files = json.loads((folder / "checkpoints" / f"{step:06d}" / "manifest.json").read_text())["files"]
    return {name: value["sha256"] for name, value in files.items()}
