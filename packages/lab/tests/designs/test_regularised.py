"""The margin, the centring and the smoothing of the pairs' loss at known values."""

import math

import pytest
import torch
from shelf.regularised import RegularisedLoss

from cooper_rl.engines.losses.reward_model import PairwiseLoss, TieLoss


def loss(gap: float, **settings) -> float:
    """The loss of one pair with logits gap / 2 and -gap / 2."""
    logits, weights = torch.tensor([[gap / 2], [1.0]], dtype=torch.float64)
    return RegularisedLoss(anchor=0, **settings).pair_loss(logits, -logits, weights).loss.item()


def test_without_its_settings_it_is_the_pairwise_loss():
    first, second = torch.randn(2, 5, dtype=torch.float64)
    weights = torch.rand(5, dtype=torch.float64)
    plain, same = (kind(anchor=0.3).pair_loss(first, second, weights) for kind in (PairwiseLoss, RegularisedLoss))
    assert same.loss.item() == pytest.approx(plain.loss.item(), abs=1e-12)
    assert same.metric_sums == plain.metric_sums
    infinite = torch.tensor([math.inf])
    assert RegularisedLoss(anchor=0).pair_loss(infinite, torch.zeros(1), torch.ones(1)).loss.item() == 0.0


def test_a_margin_moves_where_the_loss_falls():
    assert loss(1.5, margin=2) == pytest.approx(0.974077, abs=1e-6)


def test_smoothing_by_a_half_is_the_tie_loss():
    first, second = torch.randn(2, 5, dtype=torch.float64)
    weights = torch.rand(5, dtype=torch.float64)
    smoothed = RegularisedLoss(anchor=0, smoothing=0.5).pair_loss(first, second, weights).loss
    assert smoothed.item() == pytest.approx(TieLoss().pair_loss(first, second, weights).loss.item())


def test_centring_is_least_at_opposite_logits_and_leaves_the_gradient_of_the_gap_alone():
    def gradient(centring: float) -> torch.Tensor:
        logits = torch.tensor([[0.9], [0.4]], dtype=torch.float64, requires_grad=True)
        loss = RegularisedLoss(anchor=0, centring=centring)
        loss.pair_loss(logits[0], logits[1], torch.ones(1, dtype=torch.float64)).loss.backward()
        assert logits.grad is not None
        return logits.grad.flatten()

    plain, centred = gradient(0.0), gradient(0.01)
    assert (centred[0] - centred[1]).item() == pytest.approx((plain[0] - plain[1]).item())
    assert (centred.sum() - plain.sum()).item() == pytest.approx(4 * 0.01 * 1.3)
    assert loss(1.5, centring=3.0) == pytest.approx(loss(1.5))
