"""The sampler's copy of the weights lasts as long as the weights are the same, and no longer than a training pass."""

import numpy as np
import pytest
import torch

from cooper_rl.engines.base import PolicyBatch
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.cpu.decoder import compact_decoder
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.engines.losses.policy import PolicyObjective, PPOClip
from cooper_rl.records import Column

PROMPTS = [[5, 6, 7], [8, 9, 10, 11]]


def batch() -> PolicyBatch:
    each = np.full(8, 0.5)
    return PolicyBatch(
        Column.of([[1, 2, *range(3, 7)], [2, 3, *range(8, 12)]]), np.array([4, 4]), each, each, each, each
    )


@pytest.fixture
def learner(llama):
    config = LearnerConfig(model="tiny", device="cpu", learning_rate=0.1)
    return TorchPolicyLearner(llama, config, 10)


def decoder(learner):
    with torch.inference_mode():
        return compact_decoder(learner.model, torch.float32)


def test_unchanged_weights_are_not_copied_again(learner):
    first = decoder(learner)
    assert decoder(learner) is first
    learner.logprobs(batch().token_ids, batch().lengths)
    assert decoder(learner) is first


def test_a_training_pass_gives_the_copy_up(learner):
    first = decoder(learner)
    learner.forward_backward(batch(), PolicyObjective(loss=PPOClip(), kl=None))
    assert decoder(learner) is not first


@pytest.mark.parametrize("change", ["optimizer step", "load", "in place"])
def test_samples_follow_the_weights(learner, llama, tokenizer, tmp_path, change):
    sampler, params = NativeSampler(tokenizer), SamplingParams(max_tokens=6, min_tokens=6)
    sampler.sync_weights(learner)
    learner.save(tmp_path)
    before = sampler.sample(PROMPTS, 2, params, seed=0)
    if change == "optimizer step":
        for parameter in learner.model.parameters():
            parameter.grad = torch.ones_like(parameter)
        learner.optim_step()
    else:
        with torch.no_grad():
            learner.model.get_parameter("model.norm.weight").neg_()
            learner.model.get_parameter("model.layers.0.mlp.down_proj.weight").neg_()
    after = sampler.sample(PROMPTS, 2, params, seed=0)
    assert not np.allclose(before.logprobs, after.logprobs)
    rows = Column.of([[*PROMPTS[i // 2], *tokens] for i, tokens in enumerate(after.token_ids)])
    assert np.allclose(after.logprobs, learner.logprobs(rows, np.full(4, 6)), atol=1e-4)
    if change == "load":
        learner.load(tmp_path)
        assert np.array_equal(sampler.sample(PROMPTS, 2, params, seed=0).logprobs, before.logprobs)
