"""vLLM engines under Ray, with weights from two processes of a sharded policy: pushes, kills, hangs."""

import os

import pytest
import ray
import torch

pytest.importorskip("vllm", reason="vLLM is not installed; make test-vllm")

from test_vllm_push import DRAWN, PROMPTS, gap, tied_qwen2

from cooper_rl.engines.config import LearnerConfig
from rank_processes import on_ranks, two_ranks_and_vllm


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tied_qwen2(tmp_path_factory.mktemp("qwen2"))


@pytest.fixture
def learner(folder):
    return two_ranks_and_vllm().policy(LearnerConfig(model=str(folder), device="cpu"), 10)


@pytest.fixture
def sampler(folder):
    return two_ranks_and_vllm().sampler(LearnerConfig(model=str(folder)), 0)


def disturb(learner, seed: int, by: float = 0.02) -> None:
    """Change the weights of every process's shard."""

    @torch.no_grad()
    def change(rank, key):
        for i, parameter in enumerate(rank.learners[key].learner.model.parameters()):
            local = parameter.to_local()
            local.add_(by * torch.randn(local.shape, generator=torch.Generator().manual_seed(seed * 1000 + i)))

    on_ranks(change, learner.key, engine=two_ranks_and_vllm())


def pids() -> list[int]:
    """Of the engines."""
    actors = two_ranks_and_vllm().engines.receiver().actors
    return ray.get([actor.__ray_call__.remote(lambda _: os.getpid()) for actor in actors])


def test_after_each_of_twenty_pushes_sampler_and_learner_agree(sampler, learner):
    gaps, texts, versions = [], set(), set()
    for push in range(20):
        disturb(learner, push)
        sampler.load_weights(learner)
        samples = sampler.sample(PROMPTS, 4, DRAWN, seed=push)
        gaps.append(gap(samples, learner))
        texts.add(tuple(samples.texts))
        versions.add(sampler.version)
    assert max(gaps) < 1e-4, "nats after each push: " + " ".join(f"{g:.1e}" for g in gaps)
    assert len(texts) == len(versions) == 20
