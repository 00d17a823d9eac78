import math

import pytest
import torch

from cooper_rl.cooptimization.losses import bce_loss, pairwise_loss

POSITIVE = torch.tensor([1.0, 0.5], dtype=torch.float64)
NEGATIVE = torch.tensor([-1.0, 1.5], dtype=torch.float64)
WEIGHTS = torch.tensor([0.5, 0.25], dtype=torch.float64)


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def test_pairwise_loss_by_hand():
    outputs = pairwise_loss(POSITIVE, NEGATIVE, WEIGHTS)
    assert outputs.loss.item() == pytest.approx(0.5 * softplus(-2.0) + 0.25 * softplus(1.0), abs=1e-12)
    assert outputs.metric_sums["pair_accuracy"].item() == 1
    assert outputs.metric_sums["margin"].item() == pytest.approx(2.0 - 1.0)


def test_the_anchor_adds_half_of_each_cross_entropy():
    anchors = [(softplus(-1.0) + softplus(-1.0)) / 2, (softplus(-0.5) + softplus(1.5)) / 2]
    difference = (
        pairwise_loss(POSITIVE, NEGATIVE, WEIGHTS, anchor=0.3).loss - pairwise_loss(POSITIVE, NEGATIVE, WEIGHTS).loss
    )
    assert difference.item() == pytest.approx(0.3 * (0.5 * anchors[0] + 0.25 * anchors[1]), abs=1e-12)


def test_only_the_anchor_notices_a_shift_of_all_logits():
    plain = [pairwise_loss(POSITIVE + shift, NEGATIVE + shift, WEIGHTS).loss.item() for shift in (0.0, 3.0)]
    anchored = [pairwise_loss(POSITIVE + shift, NEGATIVE + shift, WEIGHTS, 0.1).loss.item() for shift in (0.0, 3.0)]
    assert plain[0] == pytest.approx(plain[1], abs=1e-12)
    assert anchored[1] > anchored[0] + 0.01


def test_bce_by_hand_with_a_soft_label():
    outputs = bce_loss(torch.tensor([2.0, -1.0]), torch.tensor([1.0, 0.25]), torch.tensor([0.5, 0.5]))
    expected = 0.5 * softplus(-2.0) + 0.5 * (0.25 * softplus(1.0) + 0.75 * softplus(-1.0))
    assert outputs.loss.item() == pytest.approx(expected, abs=1e-6)
    assert outputs.metric_sums["accuracy"].item() == 2


def test_extreme_logits_stay_finite():
    huge = torch.tensor([500.0])
    assert pairwise_loss(-huge, huge, torch.ones(1), 1.0).loss.item() == pytest.approx(1500.0)
    assert bce_loss(-huge, torch.ones(1), torch.ones(1)).loss.item() == pytest.approx(500.0)


def test_gradients_against_finite_differences():
    torch.manual_seed(0)
    logits = [torch.randn(5, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    weights, labels = torch.rand(5, dtype=torch.float64), torch.rand(5, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda p, n: pairwise_loss(p, n, weights, 0.7).loss, logits)
    assert torch.autograd.gradcheck(lambda x: bce_loss(x, labels, weights).loss, logits[:1])
