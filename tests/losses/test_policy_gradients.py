"""Gradients of the policy losses against finite differences and their defining formulas, in float64."""

from dataclasses import replace

import pytest
import torch
from policy_loss_cases import ALL, gradient, loss_gradient, one_row, random_inputs  # pyright: ignore[reportMissingImports]

from cooper_rl.losses.policy import CISPO, GSPO, KLConfig, PPOClip, policy_loss


@pytest.mark.parametrize("cap", [None, 1.5])
@pytest.mark.parametrize("kl", [None, *(KLConfig(kind=kind, coefficient=0.5) for kind in ("k1", "k2", "k3"))])
@pytest.mark.parametrize(
    "config",
    [
        PPOClip(),
        PPOClip(clip_low=0.1, clip_high=0.28, dual_clip=1.5),
        GSPO(),
        GSPO(clip_low=0.5, clip_high=0.5),
    ],
)
def test_gradients_equal_finite_differences(config, kl, cap):
    config = config.model_copy(update={"truncated_importance_sampling": cap})
    inputs = random_inputs(spread=0.7, reference=True, mismatch=0.5)
    logprobs = inputs.logprobs.clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda given: policy_loss(replace(inputs, logprobs=given), config, kl).loss, logprobs
    )


@pytest.mark.parametrize("config", ALL)
def test_on_policy_every_loss_has_the_reinforce_gradient(config):
    inputs = random_inputs(spread=0.0)
    reinforce = gradient(inputs, lambda given: -(given.weights * given.advantages * given.logprobs).sum())
    torch.testing.assert_close(loss_gradient(inputs, config), reinforce)


def test_gspo_clips_whole_completions():
    inputs = random_inputs(spread=0.5)
    per_row = loss_gradient(inputs, GSPO())
    # Row ratios are far outside 1 +- 4e-4; a row is trained only when its ratio moved against its advantage.
    moved_up = torch.where(inputs.mask, inputs.logprobs - inputs.old_logprobs, 0.0).sum(1) > 0
    trained = moved_up != (inputs.advantages[:, 0] > 0)
    assert 0 < trained.sum() < 3
    assert ((per_row != 0) == (inputs.mask & trained[:, None])).all()


def test_gspo_gradient_is_the_papers():
    # Zheng et al. eq. 10, unclipped: -s A / |o| for each token, weighted by the completion's share.
    inputs = random_inputs(spread=0.2)
    lengths = inputs.mask.sum(1, keepdim=True)
    log_ratio = torch.where(inputs.mask, inputs.logprobs - inputs.old_logprobs, 0.0)
    ratio = (log_ratio.sum(1, keepdim=True) / lengths).exp()
    share = inputs.weights.sum(1, keepdim=True)
    expected = torch.where(inputs.mask, -share * inputs.advantages * ratio / lengths, 0.0)
    torch.testing.assert_close(loss_gradient(inputs, GSPO(clip_low=1.0, clip_high=9.0)), expected)


def test_cispo_gradient_is_that_of_log_likelihood_under_a_constant_clipped_weight():
    inputs = random_inputs(spread=1.0)
    config = CISPO(clip_low=0.5, clip_high=0.5)
    weight = (inputs.logprobs - inputs.old_logprobs).exp().clamp(0.5, 1.5)
    expected = torch.where(inputs.mask, -inputs.weights * inputs.advantages * weight, 0.0)
    torch.testing.assert_close(loss_gradient(inputs, config), expected)
    outputs = policy_loss(inputs, config)
    assert 0 < outputs.metric_sums["clip_fraction"].item() < 9
    torch.testing.assert_close(outputs.loss, (expected * inputs.logprobs).sum())


@pytest.mark.parametrize("config", [PPOClip(), GSPO(clip_high=9.0), CISPO(clip_high=9.0)])
def test_truncated_importance_sampling_multiplies_the_gradient(config):
    # The sampler gave the tokens 1/2, 1 and 5 times the learner's old probability: weights 2 (capped), 1, 1/5.
    inputs = one_row([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    inputs = replace(inputs, sampler_logprobs=inputs.old_logprobs + torch.tensor([[0.5, 1.0, 5.0]]).double().log())
    config = config.model_copy(update={"truncated_importance_sampling": 1.5})
    outputs = policy_loss(inputs, config)
    assert outputs.metric_sums["truncated_fraction"].item() == 1
    grad = loss_gradient(inputs, config)[0]
    if config.kind == "gspo":  # one ratio: the tokens share the sum of the weights
        assert grad.tolist() == pytest.approx([-(1.5 + 1 + 0.2) / 3] * 3)
    else:
        assert grad.tolist() == pytest.approx([-1.5, -1.0, -0.2])
