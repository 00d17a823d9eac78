"""Losses of the reward model at known values."""

import math

import pytest
import torch

from cooper_rl.engines.losses.reward_model import PairwiseLoss, TieLoss, bce_loss

POSITIVE = torch.tensor([1.0, 0.5], dtype=torch.float64)
NEGATIVE = torch.tensor([-1.0, 1.5], dtype=torch.float64)
WEIGHTS = torch.tensor([0.5, 0.25], dtype=torch.float64)
PLAIN = PairwiseLoss(anchor=0)


def loss(gap: float, weight: float = 1.0) -> float:
    """The loss of one pair with logits gap / 2 and -gap / 2."""
    logits = torch.tensor([gap / 2], dtype=torch.float64)
    weights = torch.tensor([weight], dtype=torch.float64)
    return PLAIN.pair_loss(logits, -logits, weights).loss.item()


def test_bradley_terry_with_strength():
    assert loss(1.5) == pytest.approx(0.201413, abs=1e-6)
    assert loss(1.5, weight=2) == pytest.approx(0.402827, abs=1e-6)
    assert loss(1.5, weight=0) == 0


def test_a_tie_is_cheapest_at_equal_logits_and_pulls_with_half_the_tanh():
    def tie(gap: float) -> tuple[float, float]:
        first = torch.tensor([gap], dtype=torch.float64, requires_grad=True)
        value = TieLoss().pair_loss(first, torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)).loss
        value.backward()
        assert first.grad is not None
        return value.item(), first.grad.item()

    assert tie(0.0) == pytest.approx((math.log(2), 0.0))
    assert tie(1.5) == pytest.approx((0.951413, math.tanh(0.75) / 2), abs=1e-6)


def test_an_infinite_logit_still_has_a_loss():
    infinite = torch.tensor([math.inf])
    assert PLAIN.pair_loss(infinite, torch.zeros(1), torch.ones(1)).loss.item() == 0.0


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def test_pairwise_loss_by_hand():
    outputs = PLAIN.pair_loss(POSITIVE, NEGATIVE, WEIGHTS)
    assert outputs.loss.item() == pytest.approx(0.5 * softplus(-2.0) + 0.25 * softplus(1.0), abs=1e-12)
    assert outputs.metric_sums["pair_accuracy"].item() == 1
    assert outputs.metric_sums["margin"].item() == pytest.approx(2.0 - 1.0)


def test_the_anchor_adds_half_of_each_cross_entropy():
    anchors = [(softplus(-1.0) + softplus(-1.0)) / 2, (softplus(-0.5) + softplus(1.5)) / 2]
    anchored, plain = (loss.pair_loss(POSITIVE, NEGATIVE, WEIGHTS).loss for loss in (PairwiseLoss(anchor=0.3), PLAIN))
    difference = anchored - plain
    assert difference.item() == pytest.approx(0.3 * (0.5 * anchors[0] + 0.25 * anchors[1]), abs=1e-12)


def test_only_the_anchor_notices_a_shift_of_all_logits():
    plain, anchored = (
        [loss.pair_loss(POSITIVE + shift, NEGATIVE + shift, WEIGHTS).loss.item() for shift in (0.0, 3.0)]
        for loss in (PLAIN, PairwiseLoss(anchor=0.1))
    )
    assert plain[0] == pytest.approx(plain[1], abs=1e-12)
    assert anchored[1] > anchored[0] + 0.01


def test_bce_by_hand_with_a_soft_label():
    outputs = bce_loss(torch.tensor([2.0, -1.0]), torch.tensor([1.0, 0.25]), torch.tensor([0.5, 0.5]))
    expected = 0.5 * softplus(-2.0) + 0.5 * (0.25 * softplus(1.0) + 0.75 * softplus(-1.0))
    assert outputs.loss.item() == pytest.approx(expected, abs=1e-6)
    assert outputs.metric_sums["accuracy"].item() == 2


def test_extreme_logits_stay_finite():
    huge = torch.tensor([500.0])
    assert PairwiseLoss(anchor=1).pair_loss(-huge, huge, torch.ones(1)).loss.item() == pytest.approx(1500.0)
    assert bce_loss(-huge, torch.ones(1), torch.ones(1)).loss.item() == pytest.approx(500.0)


def test_gradients_against_finite_differences():
    torch.manual_seed(0)
    logits = [torch.randn(5, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    weights, labels = torch.rand(5, dtype=torch.float64), torch.rand(5, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda p, n: PairwiseLoss(anchor=0.7).pair_loss(p, n, weights).loss, logits)
    assert torch.autograd.gradcheck(lambda x: bce_loss(x, labels, weights).loss, logits[:1])
