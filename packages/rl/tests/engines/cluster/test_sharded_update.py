"""Sharded learners compute what the in-process learner computes: the gradient itself, which clipping would hide."""

import pytest
import ray
import torch
from sharded import alone, one_update

from cooper_rl.engines.scale.ray import ClusterEngine
from rank_processes import on_ranks, together, two_ranks
from slow_members import first_fast

CASES = [
    (kind, dtype, lora)
    for kind in ("policy", "reward_model")
    for dtype in (torch.float32, torch.float64)
    for lora in (False, True)
]
EACH_ONCE = [("policy", torch.float64, False), ("reward_model", torch.float64, True)]
EACH_FIRST = first_fast([*EACH_ONCE, *(case for case in CASES if case not in EACH_ONCE)], fast=len(EACH_ONCE))
"""Fast are each kind of learner, with an adapter and without, in float64, in which a gradient that is off is seen."""


def compare(found: dict, kind: str, dtype: torch.dtype, lora: bool, frozen: int = 0) -> None:
    expected = one_update(kind, dtype, lora, sharded=False, frozen=frozen)
    close = 1e-12 if dtype == torch.float64 else 2e-6
    assert found["metrics"] == pytest.approx(expected["metrics"], rel=close, abs=close)
    assert expected["metrics"]["grad_norm"] > 0.2  # clipped
    for what in ("gradient", "weights"):
        torch.testing.assert_close(found[what], expected[what], rtol=close, atol=close)
    torch.testing.assert_close(found["says"], expected["says"], rtol=0, atol=max(close, 1e-5 if close > 1e-7 else 0))


@pytest.mark.parametrize(("kind", "dtype", "lora"), EACH_FIRST)
def test_one_process(kind, dtype, lora):
    with alone():
        compare(one_update(kind, dtype, lora, sharded=True), kind, dtype, lora)


@together
@pytest.mark.parametrize(("kind", "dtype", "lora"), EACH_FIRST)
def test_two_processes(kind, dtype, lora):
    two_ranks()
    for found in on_ranks(lambda _, *case: one_update(*case, sharded=True), kind, dtype, lora):
        compare(found, kind, dtype, lora)


@together
@pytest.mark.parametrize("kind", ["policy", pytest.param("reward_model", marks=pytest.mark.slow)])
def test_two_processes_with_frozen_layers(kind):
    two_ranks()
    case = (kind, torch.float64, False)
    for found in on_ranks(lambda _, *case: one_update(*case, sharded=True, frozen=1), *case):
        assert not [name for name in found["gradient"] if ".layers.0." in name or ".embed" in name]
        compare(found, *case, frozen=1)


@pytest.mark.slow
@together
def test_four_processes(tmp_path):
    two_ranks()  # Ray itself
    engine = ClusterEngine(policy_ranks=4, cpus_per_rank=0.25)
    engine.open(tmp_path)
    try:
        for kind, dtype, lora in CASES:
            actors = engine.policy_group.actors
            calls = [
                a.__ray_call__.remote(lambda _, *case: one_update(*case, sharded=True), kind, dtype, lora)
                for a in actors
            ]
            for found in ray.get(calls):
                compare(found, kind, dtype, lora)
    finally:
        engine.close()
