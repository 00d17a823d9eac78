"""A real `cooper serve` for adapters, in a process of its own."""

import json

import pytest
from rows import CORRUPTER

from cooper_base.data.answer import Answer
from cooper_base.data.problem import Problem
from cooper_lab.arithmetic.problems import arithmetic_problems
from service.served import Served


@pytest.fixture(scope="session")
def served_url(tiny_models, tmp_path_factory):
    """The address of a service with the tiny reward model."""
    pytest.importorskip("fastapi", reason="needs the extra serve")
    folder = tmp_path_factory.mktemp("served")
    model = {"model": str(tiny_models / "reward_model"), "learning_rate": 1e-2, "max_input_tokens": 160}
    settings = {
        "kind": "cooper_model",
        "reward_model": model,
        "cooptimization": {"assistant": CORRUPTER},
        "threads": 1,
        "serve": {"folder": str(folder / "state"), "batch_rows": 0},
    }
    with Served(folder, settings) as server:
        yield server.url


@pytest.fixture
def service(served_url, tmp_path_factory, monkeypatch):
    """A client of the service as it was at its start, which is also the one that the environment names."""
    from cooper_rl.adapters import served

    client = served.RewardClient(served_url)
    start = tmp_path_factory.getbasetemp() / "start"
    if start.exists():
        client.load(start)
    else:
        client.save(start)
    monkeypatch.setenv(served.URL, served_url)
    for cached in (served.client, served.columns):
        cached.cache_clear()
    yield client
    client.close()


@pytest.fixture
def seen(service, tmp_path_factory):
    """The answers that the service has scored in the step under way, from its journal."""

    def seen() -> list[Answer]:
        (folder,) = tmp_path_factory.getbasetemp().glob("served[0-9]*/state/journals")
        lines = sorted(folder.glob("*.jsonl"))[-1].read_text(encoding="utf-8").splitlines()
        scored = [record for record in map(json.loads, lines) if record["kind"] == "scored"]
        groups = [one["group"] for record in scored for one in record["groups"]]
        return [Answer(**answer) for group in groups for answer in group["answers"]]

    return seen


@pytest.fixture(scope="session")
def problems() -> list[Problem]:
    return arithmetic_problems("train", 8)
