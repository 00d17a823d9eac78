"""Policy losses under micro-batching, padding, and broken or extreme log-probabilities."""

from dataclasses import replace

import pytest
import torch
from policy_loss_cases import ALL, loss_gradient, one_row, over_tensors, random_inputs  # pyright: ignore[reportMissingImports]

from cooper_rl.engines.losses.policy import KLConfig, PolicyLossInputs, policy_loss


def rows(inputs: PolicyLossInputs, first: int, last: int) -> PolicyLossInputs:
    """Only these rows, without padding beyond the longest of them."""
    width = int(inputs.mask[first:last].sum(1).max())
    return over_tensors(inputs, lambda value: value[first:last, :width])


@pytest.mark.parametrize("config", ALL)
def test_micro_batches_add_up_to_the_whole_batch(config):
    inputs = random_inputs(spread=0.5, reference=True, mismatch=0.5)
    config = config.model_copy(update={"truncated_importance_sampling": 2.0})
    kl = KLConfig(coefficient=0.1)
    whole = policy_loss(inputs, config, kl)
    batches = [rows(inputs, 0, 1), rows(inputs, 1, 3)]
    parts = [policy_loss(batch, config, kl) for batch in batches]
    torch.testing.assert_close(parts[0].loss + parts[1].loss, whole.loss)
    for name, value in whole.metric_sums.items():
        torch.testing.assert_close(parts[0].metric_sums[name] + parts[1].metric_sums[name], value)
    grads = torch.cat([loss_gradient(batch, config, kl)[batch.mask] for batch in batches])
    torch.testing.assert_close(grads, loss_gradient(inputs, config, kl)[inputs.mask])


@pytest.mark.parametrize("garbage", [123.0, float("nan"), float("-inf")])
@pytest.mark.parametrize("config", ALL)
def test_padding_has_no_effect(config, garbage):
    inputs = random_inputs(spread=0.5, reference=True, mismatch=0.5)
    config = config.model_copy(update={"truncated_importance_sampling": 2.0})
    kl = KLConfig(coefficient=0.1)
    mask = inputs.mask
    dirty = over_tensors(inputs, lambda value: value if value is mask else value.where(mask, garbage))
    clean_outputs, dirty_outputs = policy_loss(inputs, config, kl), policy_loss(dirty, config, kl)
    assert dirty_outputs.loss == clean_outputs.loss
    assert dirty_outputs.metric_sums == clean_outputs.metric_sums
    assert torch.equal(loss_gradient(dirty, config, kl), loss_gradient(inputs, config, kl))


@pytest.mark.parametrize("advantage", [1.0, -1.0, 0.0])
@pytest.mark.parametrize("broken", [float("nan"), float("-inf"), float("inf")])
@pytest.mark.parametrize("which", ["logprobs", "old_logprobs"])
@pytest.mark.parametrize("config", ALL)
def test_non_finite_log_probabilities_are_not_hidden_by_the_clips(config, which, broken, advantage):
    inputs = one_row([1.0, 1.0], [advantage, advantage])
    spoiled = getattr(inputs, which).clone()
    spoiled[0, 1] = broken
    inputs = replace(inputs, **{which: spoiled})
    outputs = policy_loss(inputs, config)
    assert outputs.loss.isnan()
    assert outputs.metric_sums["ratio"].isnan()
    assert loss_gradient(inputs, config)[0, 1].isnan()


@pytest.mark.parametrize("advantage", [1.0, -1.0])
@pytest.mark.parametrize("config", ALL)
def test_extreme_but_finite_ratios_stay_finite_in_float32(config, advantage):
    inputs = one_row([1.0, 1.0], [advantage, advantage])
    inputs = over_tensors(inputs, lambda value: value if value.dtype == torch.bool else value.float())
    inputs = replace(inputs, old_logprobs=torch.tensor([[-500.0, -0.1]]), logprobs=torch.tensor([[-0.1, -500.0]]))
    assert policy_loss(inputs, config).loss.isfinite()
    assert loss_gradient(inputs, config).isfinite().all()
