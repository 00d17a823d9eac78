"""Gradients of the policy losses against finite differences and their defining formulas, in float64."""

from dataclasses import replace

import pytest
import torch
from policy_loss_cases import ALL, gradient, loss_gradient, one_row, random_inputs  # pyright: ignore[reportMissingImports]

from cooper_lab.designs.cispo import CISPO
from cooper_lab.designs.gspo import GSPO
from cooper_rl.engines.losses.policy import KLConfig, PPOClip, policy_loss


@pytest.mark.parametrize("cap", [None, 1.5])
@pytest.mark.parametrize("kl", [None, *(KLConfig(kind=kind, coefficient=0.5) for kind in ("k1", "k2", "k3"))])
@pytest.mark.parametrize(
    "config",
    [
        PPOClip(),
        PPOClip(clip_low=0.1, clip_high=0.28),
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


@pytest.mark.parametrize(
    ("drift", "sums", "masked"),
    [  # log-ratios of learner to sampler, of completions of 4, 2 and 1 tokens
        ("product", [1.2, -1.2, 0.9], [True, False, False]),  # log 3 = 1.0986, above only
        ("product", [0.4, 0.0, 1.0], [False, False, False]),
        ("mean", [0.036, 0.022, 0.009], [False, True, False]),  # log 1.01 = 0.00995 for a token
        ("mean", [-0.044, -0.018, 0.011], [True, False, True]),  # on both sides
    ],
)
@pytest.mark.parametrize("config", [PPOClip(), GSPO(clip_high=9.0), CISPO(clip_high=9.0)])
@pytest.mark.parametrize("cap", [None, 1.5])
def test_the_loss_of_a_completion_that_drifted_is_masked_and_its_kl_term_is_not(config, cap, drift, sums, masked):
    inputs = random_inputs(spread=0.1, reference=True)
    lengths, sums = torch.tensor([4, 2, 1]), torch.tensor(sums, dtype=torch.float64)
    mask = torch.arange(inputs.mask.shape[1]) < lengths[:, None]
    mismatch = (sums / lengths)[:, None].expand(inputs.mask.shape)
    inputs = replace(inputs, mask=mask, sampler_logprobs=inputs.old_logprobs - mismatch)
    config = config.model_copy(update={"truncated_importance_sampling": cap})
    masking = config.model_copy(update={"drift": drift})
    kl = KLConfig(coefficient=0.5)
    drifted = torch.tensor(masked)[:, None]
    without = loss_gradient(inputs, config)
    of_kl = loss_gradient(inputs, config, kl) - without
    torch.testing.assert_close(loss_gradient(inputs, masking, kl), without.where(~drifted, 0.0) + of_kl)
    fraction = policy_loss(inputs, masking, kl).metric_sums["drifted_fraction"]
    assert fraction.item() == lengths[torch.tensor(masked)].sum()


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), float("-inf")])
def test_a_mismatch_that_is_no_number_is_not_masked_away(broken):
    inputs = one_row([1.0, 1.0], [1.0, 1.0])
    sampler = inputs.old_logprobs.clone()
    sampler[0, 0] = broken
    config = PPOClip(truncated_importance_sampling=2.0, drift="product")
    assert policy_loss(replace(inputs, sampler_logprobs=sampler), config).loss.isnan()
