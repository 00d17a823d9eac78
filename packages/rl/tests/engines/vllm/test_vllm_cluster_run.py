"""A run with two processes of the policy, two of the reward model and a vLLM engine, which dies in the middle."""

import os
import signal

import pytest
import ray

pytest.importorskip("vllm", reason="vLLM is not installed; make test-vllm")

from test_vllm_run import small_policy

from cooper_audit.run.run_record import read_metrics
from cooper_rl import CooperTrainer, build_config
from cooper_rl.engines.scale.ray import ClusterEngine
from rank_processes import SMALL_VLLM

ENGINE = {
    "kind": "cluster",
    "policy_ranks": 2,
    "reward_model_ranks": 2,
    "cpus_per_rank": 0.1,
    "samplers": {"kind": "vllm", "engines": 1, "timeout_s": 60, **SMALL_VLLM},
}


@pytest.fixture
def run(settings, tmp_path):
    settings["policy"] |= {"model": small_policy(tmp_path / "policy")}
    return {**settings, "engine": ENGINE, "steps": 4, "checkpoint": {"every": 0}}


def pid_of_engine(engine: ClusterEngine) -> int:
    assert engine.session.engines is not None
    (actor,) = engine.session.engines.actors
    return ray.get(actor.__ray_call__.remote(lambda _: os.getpid()))


def test_an_engine_that_dies_costs_no_step_and_the_ratios_stay_one(run):
    """Completions are of the policy that learns: before the first update no ratio differs from 1."""
    config = build_config(run)
    engine = config.engine
    assert isinstance(engine, ClusterEngine)

    def kill(step: int, _: object) -> None:
        if step == 2:
            os.kill(pid_of_engine(engine), signal.SIGKILL)

    with CooperTrainer.from_config(config) as trainer:
        trainer.fit(kill)
    rows = read_metrics(trainer.directory)
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4]
    assert [row["engine/restarts"] for row in rows[1:]] == [0, 0, 1, 0]
    assert [row["engine/recoveries"] for row in rows[1:]] == [0, 0, 0, 0]
    assert all(abs(row["policy/ratio"] - 1) < 1e-5 for row in rows[1:])
    assert all(row["time/push_weights"] > 0 for row in rows[1:])
    logs = sorted(path.name for path in (trainer.directory / "logs").iterdir())
    ranks = [f"{name}-{i}.log" for name in ("policy", "reward_model") for i in range(2)]
    assert logs == ["engine-0.log", *ranks]
