"""Co-training with every fault of the assistant's server: the run goes on, counts the fault, and uses no wrong pair."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from chat_server import ChatServer
from cooper_audit.run.run_record import read_metrics
from cooper_rl import CooperTrainer, InputError, RuleVerifier, build_config
from cooper_rl.engines.local.learner import TorchPolicyLearner
from faulty_assistant import QUICK, SLOW, FaultyAssistant
from in_process import model_of
from slow_members import first_fast

CHAT = {"kind": "chat", "model": "assistant", "max_retries": 1, "tries": 2}


@pytest.fixture
def settings_for(settings):
    """A tiny co-training run in which only the assistant writes negatives, each for a reference solution."""

    def settings_for(url: str, assistant: dict[str, Any] | None = None, **changes) -> dict[str, Any]:
        cooptimization = {"pairs": [{"kind": "assistant"}], "assistant": {**CHAT, "base_url": url, **(assistant or {})}}
        kind = "cooper_light"  # one question to the assistant for each problem
        run = {**settings, "kind": kind, "steps": 2, "evaluation": {"every": 0}, "checkpoint": {"every": 0}}
        return run | {"cooptimization": cooptimization} | changes

    return settings_for


def train(run: dict[str, Any], on_step=None, resume=False) -> CooperTrainer:
    with CooperTrainer.from_config(build_config(run), resume) as trainer:
        trainer.fit(on_step)
    return trainer


def pairs_of(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted((directory / "pairs").iterdir()) for line in path.open()]


def check_counts(metrics: dict[str, float]) -> None:
    outcomes = [v for k, v in metrics.items() if k.startswith(("assistant/failures_", "assistant/rejected_"))]
    assert metrics["assistant/attempts"] == sum(outcomes) + metrics["assistant/accepted"]


def check_pairs(pairs: list[dict[str, Any]]) -> None:
    with RuleVerifier() as rule:
        verdicts = rule.verify_many([(pair["answer"], pair["negative"]) for pair in pairs])
        assert set(verdicts) <= {"wrong"}
        assert set(rule.verify_many([(pair["answer"], pair["positive"]) for pair in pairs])) <= {"correct"}
    assert all(pair["negative"].strip() and pair["negative"] != pair["positive"] for pair in pairs)
    assert all(len(pair["negative"]) <= 4 * len(pair["positive"]) + 400 for pair in pairs)


ONE_EACH = [*{counted: fault for fault, (_, counted) in reversed(QUICK.items())}.values()]
"""The first fault of each metric that counts faults."""


@pytest.mark.parametrize(
    "faults", [pytest.param(ONE_EACH, id="one each"), pytest.param([*QUICK], id="all", marks=pytest.mark.slow)]
)
def test_a_run_meets_every_fault_counts_it_and_recovers(settings_for, faults):
    """One run in which every step with a fault is followed by a step with a working server."""
    assistant = FaultyAssistant(faults[0])

    def next_fault(step: int, metrics: dict[str, float]) -> None:
        assistant.fault = None if step % 2 else faults[step // 2 % len(faults)]

    with ChatServer(assistant) as server:
        trainer = train(settings_for(server.url, steps=2 * len(faults)), next_fault)
        assert server.sent < 2**28  # a small part of the gigabytes that it would have sent
    rows = {row["step"]: row for row in read_metrics(trainer.directory)}
    assert len(rows) == 2 * len(faults)
    for row in rows.values():
        check_counts(row)
    for number, fault in enumerate(faults):
        faulty, healthy = rows[2 * number + 1], rows[2 * number + 2]
        assert faulty["assistant/accepted"] == faulty["pairs/count"] == 0, fault
        assert faulty[f"assistant/{QUICK[fault][1]}"] == faulty["assistant/attempts"] > 0, fault
        assert faulty["pairs/steps_without"] == 1, fault
        assert healthy["pairs/count"] > 0, fault
        assert healthy["pairs/steps_without"] == 0, fault
    check_pairs(pairs_of(trainer.directory))


@pytest.mark.parametrize("fault", first_fast(SLOW))
def test_a_slow_server_holds_a_step_only_as_long_as_allowed(settings_for, fault, monkeypatch):
    monkeypatch.setattr("cooper_rl.reward.pairs.chat_assistant.STEP_TIMEOUT_S", 3.0)
    with ChatServer(FaultyAssistant(fault)) as server:
        trainer = train(settings_for(server.url, {"timeout_s": 0.4}, steps=1))
    [row] = read_metrics(trainer.directory)
    check_counts(row)
    assert row["assistant/failures_timeout"] + row["assistant/failures_deadline"] == row["assistant/attempts"] > 0
    assert row[f"assistant/{SLOW[fault][1]}"] > 0
    assert pairs_of(trainer.directory) == []


@pytest.mark.slow
def test_a_server_that_dies_and_comes_back_is_found_again_with_or_without_a_resume(settings_for):
    first = ChatServer(FaultyAssistant())
    run = settings_for(first.url, steps=6, checkpoint={"every": 2})

    with CooperTrainer.from_config(build_config(run)) as trainer:

        def dies_after_step_1(step: int, metrics: dict[str, float]) -> None:
            if step == 1:
                first.stop()
            else:
                trainer.request_stop()

        trainer.fit(dies_after_step_1)
    with pytest.raises(InputError, match="base_url"):
        train(run, resume=True)  # no server answers at the start
    second = ChatServer(FaultyAssistant(), first.port)
    with CooperTrainer.from_config(build_config(run), resume=True) as trainer:
        second.stop()
        third: list[ChatServer] = []

        def is_back_after_step_4(step: int, metrics: dict[str, float]) -> None:
            if step == 4:
                third.append(ChatServer(FaultyAssistant(), first.port))

        trainer.fit(is_back_after_step_4)
    third[0].stop()
    rows = {row["step"]: row for row in read_metrics(trainer.directory)}
    assert [rows[step]["pairs/steps_without"] for step in range(1, 7)] == [0, 1, 2, 3, 0, 0]
    assert rows[2]["assistant/failures_connection"] == rows[2]["assistant/attempts"]
    for row in rows.values():
        check_counts(row)
    # While the server is known to be down, a step asks once.
    assert rows[4]["assistant/failures_connection"] == 1
    assert rows[4]["assistant/failures_not_sent"] == rows[4]["assistant/attempts"] - 1


def policy_weights(trainer):
    policy = trainer.parts.policy
    assert isinstance(policy, TorchPolicyLearner)
    return list(policy.model.parameters())


@pytest.mark.slow
def test_without_valid_pairs_the_policy_trains_as_with_a_static_reward_model(settings_for):
    with ChatServer(FaultyAssistant("HTTP 500")) as server:
        run = settings_for(server.url, steps=3)
        faulty = train(run)
    static = train({**run, "kind": "static", "name": "static"})
    with ChatServer(FaultyAssistant()) as server:
        healthy = train({**settings_for(server.url, steps=3), "name": "healthy"})
    weights = [list(model_of(trainer.parts.policy).parameters()) for trainer in (faulty, static, healthy)]
    assert all(torch.equal(ours, theirs) for ours, theirs, _ in zip(*weights, strict=True))
    assert not all(torch.equal(ours, theirs) for ours, _, theirs in zip(*weights, strict=True))


def test_a_mistyped_address_is_reported_before_any_weights_are_loaded(settings_for, tmp_path):
    run = settings_for("http://127.0.0.1:9/v1")
    broken = Path(shutil.copytree(run["reward_model"]["model"], tmp_path / "broken"))
    (broken / "model.safetensors").write_bytes(b"no weights")
    run["reward_model"] = {"model": str(broken)}
    with pytest.raises(InputError, match=r"chat server http://127.0.0.1:9/v1.*connection"):
        train(run)
