"""Losses of the reward model at known values."""

import math

import pytest
import torch

from cooper_rl.cooptimization.losses import pairwise_loss, tie_loss


def loss(gap: float, weight: float = 1.0, **settings) -> float:
    """The loss of one pair with logits gap / 2 and -gap / 2."""
    logits = torch.tensor([gap / 2], dtype=torch.float64)
    return pairwise_loss(logits, -logits, torch.tensor([weight], dtype=torch.float64), **settings).loss.item()


def test_bradley_terry_with_margin_and_strength():
    assert loss(1.5) == pytest.approx(0.201413, abs=1e-6)
    assert loss(1.5, margin=2) == pytest.approx(0.974077, abs=1e-6)
    assert loss(1.5, weight=2) == pytest.approx(0.402827, abs=1e-6)
    assert loss(1.5, weight=0) == 0


def test_a_tie_is_cheapest_at_equal_logits_and_pulls_with_half_the_tanh():
    def tie(gap: float) -> tuple[float, float]:
        first = torch.tensor([gap], dtype=torch.float64, requires_grad=True)
        value = tie_loss(first, torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)).loss
        value.backward()
        assert first.grad is not None
        return value.item(), first.grad.item()

    assert tie(0.0) == pytest.approx((math.log(2), 0.0))
    assert tie(1.5) == pytest.approx((0.951413, math.tanh(0.75) / 2), abs=1e-6)


def test_smoothing_by_a_half_is_the_tie_loss():
    first, second = torch.randn(2, 5, dtype=torch.float64)
    weights = torch.rand(5, dtype=torch.float64)
    smoothed = pairwise_loss(first, second, weights, smoothing=0.5).loss
    assert smoothed.item() == pytest.approx(tie_loss(first, second, weights).loss.item())


def test_centring_is_least_at_opposite_logits_and_leaves_the_gradient_of_the_gap_alone():
    def gradient(centring: float) -> torch.Tensor:
        logits = torch.tensor([[0.9], [0.4]], dtype=torch.float64, requires_grad=True)
        pairwise_loss(logits[0], logits[1], torch.ones(1, dtype=torch.float64), centring=centring).loss.backward()
        assert logits.grad is not None
        return logits.grad.flatten()

    plain, centred = gradient(0.0), gradient(0.01)
    assert (centred[0] - centred[1]).item() == pytest.approx((plain[0] - plain[1]).item())
    assert (centred.sum() - plain.sum()).item() == pytest.approx(4 * 0.01 * 1.3)
    assert loss(1.5, centring=3.0) == pytest.approx(loss(1.5))


def test_an_infinite_logit_still_has_a_loss_without_smoothing():
    infinite = torch.tensor([math.inf])
    assert pairwise_loss(infinite, torch.zeros(1), torch.ones(1)).loss.item() == 0.0
