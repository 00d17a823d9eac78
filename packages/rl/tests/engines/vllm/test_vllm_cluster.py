"""vLLM engines under Ray, with weights from two processes of a sharded policy: pushes, kills, hangs."""

import os
import signal

import numpy as np
import pytest
import ray
import torch

pytest.importorskip("vllm", reason="vLLM is not installed; make test-vllm")

from test_vllm_push import DRAWN, PROMPTS, check_twenty_pushes, gap, tied_qwen2

from cooper_rl.engines.config import LearnerConfig, LoraConfig
from cooper_rl.engines.scale.ray.config import VllmSamplers
from cooper_rl.engines.scale.ray.vllm_engines import connect_ranks, prompt_shares
from cooper_rl.engines.scale.vllm.engines import CompletionRequest
from cooper_rl.engines.scale.vllm.sampler import build_sampler
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


def disturb(learner, seed: int, by: float = 0.02, only: str = "") -> None:
    """Change the weights of every process's shard, those with `only` in their name."""

    @torch.no_grad()
    def change(rank, key):
        named = rank.parts[key].learner.model.named_parameters()
        for i, parameter in enumerate(p for name, p in named if only in name):
            local = parameter.to_local()
            local.add_(by * torch.randn(local.shape, generator=torch.Generator().manual_seed(seed * 1000 + i)))

    on_ranks(change, learner.key, engine=two_ranks_and_vllm())


def pids() -> list[int]:
    """Of the engines."""
    engines = two_ranks_and_vllm().session.engines
    assert engines is not None
    actors = engines.actors
    return ray.get([actor.__ray_call__.remote(lambda _: os.getpid()) for actor in actors])


def test_after_each_of_twenty_pushes_sampler_and_learner_agree(sampler, learner):
    check_twenty_pushes(sampler, learner, lambda push: disturb(learner, push))


def test_the_adapter_of_a_sharded_policy_is_sent_alone(folder):
    """The policy's processes gather it together; each engine applies it beside the weights that it started with."""
    config = LearnerConfig(model=str(folder), device="cpu", lora=LoraConfig(rank=3, alpha=6))
    learner, engines = two_ranks_and_vllm().policy(config, 10), two_ranks_and_vllm().session.engines
    assert engines is not None
    vllm = two_ranks_and_vllm().samplers
    assert isinstance(vllm, VllmSamplers)

    def start(model, settings, backend, _):  # by itself, a run on a CPU would send merged weights
        return engines.start(model, settings, backend, vllm.adapter_rank(config))

    sampler = build_sampler(config, vllm, "gloo", start, connect_ranks)
    for push in range(3):
        disturb(learner, push, 0.05, only=".lora_")
        sampler.sync_weights(learner)
        assert gap(sampler.sample(PROMPTS, 4, DRAWN, seed=push), learner) < 1e-4
    assert engines.adapter_rank == 8
    before = engines.restarts
    os.kill(pids()[1], signal.SIGKILL)
    assert gap(sampler.sample(PROMPTS, 4, DRAWN, seed=0), learner) < 1e-4
    assert engines.restarts == before + 1


def test_an_engine_that_is_killed_is_replaced_and_draws_the_same(sampler, learner):
    disturb(learner, 1)
    sampler.sync_weights(learner)
    before = sampler.sample(PROMPTS, 4, DRAWN, seed=3)
    first = pids()
    os.kill(first[1], signal.SIGKILL)
    after = sampler.sample(PROMPTS, 4, DRAWN, seed=3)
    assert pids()[0] == first[0]
    assert pids()[1] != first[1]
    np.testing.assert_array_equal(after.token_ids.values, before.token_ids.values)
    assert gap(after, learner) < 1e-4
    counted = sampler.take_metrics()
    assert counted["engine/restarts"] == counted["engine/reconnections"] == 1
    assert sampler.take_metrics()["engine/restarts"] == 0


def test_a_push_that_an_engine_does_not_survive_is_made_again(sampler, learner):
    """It dies after five tensors; the policy's processes, which gather each tensor together, go on."""
    sampler.sync_weights(learner)
    disturb(learner, 2)

    def arm(rank, key, victim):
        """Have the first process kill the engine in the middle of the next push, once."""
        model = rank.parts[key].learner.model
        whole, done = model.named_parameters, []

        def deadly(*arguments, **settings):
            for i, item in enumerate(whole(*arguments, **settings)):
                if len(done) == 1 and i == 5:
                    os.kill(victim, signal.SIGKILL)
                    done.append("killed")
                yield item
            done.append("described")  # the first pass is that of the metadata

        model.named_parameters = deadly

    actor, victim = learner.group.actors[0], pids()[0]
    ray.get(actor.__ray_call__.remote(arm, learner.key, victim))
    sampler.sync_weights(learner)
    assert gap(sampler.sample(PROMPTS, 4, DRAWN, seed=0), learner) < 1e-4
    counted = sampler.take_metrics()
    assert counted["engine/failed_pushes"] == counted["engine/restarts"] == 1
    assert victim not in pids()


def test_an_engine_that_hangs_is_ended_and_replaced(sampler, learner):
    """It is noticed by the next push, `timeout_s` later."""
    sampler.sync_weights(learner)
    before = pids()
    os.kill(before[0], signal.SIGSTOP)
    sampler.sync_weights(learner)
    assert gap(sampler.sample(PROMPTS, 4, DRAWN, seed=0), learner) < 1e-4
    assert sampler.take_metrics()["engine/restarts"] == 1
    assert before[0] not in pids()


def test_all_samples_of_a_prompt_go_to_one_engine():
    asked = [CompletionRequest([prompt], {"seed": i}) for prompt in (7, 8, 9, 8, 5) for i in range(3)]
    first, second = prompt_shares(asked, 2)
    assert first + second == asked
    assert [len(first), len(second)] == [6, 9]
    assert prompt_shares(asked[:3], 2) == [[], asked[:3]]
    assert prompt_shares([], 2) == [[], []]
