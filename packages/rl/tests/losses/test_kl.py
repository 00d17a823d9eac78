"""KL estimators against the exact divergence of a small categorical distribution."""

import math

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from cooper_rl.engines.losses.policy import KLConfig, KLKind, kl_estimate

LOGITS = torch.tensor([0.3, -1.2, 0.8, 0.1], dtype=torch.float64)
REFERENCE = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64).log()


def kl(p: Tensor, q: Tensor) -> Tensor:
    return (p.exp() * (p - q)).sum()


def mean_gradient(kind: KLKind) -> Tensor:
    """The gradient of the estimate with respect to the logits; the sampling itself is not differentiated."""
    logits = LOGITS.clone().requires_grad_()
    logprobs = logits.log_softmax(-1)
    (logprobs.exp().detach() * kl_estimate(kind, logprobs, REFERENCE)).sum().backward()
    assert logits.grad is not None
    return logits.grad


def gradient_of(divergence) -> Tensor:
    logits = LOGITS.clone().requires_grad_()
    divergence(logits.log_softmax(-1)).backward()
    assert logits.grad is not None
    return logits.grad


@pytest.mark.parametrize("kind", ["k1", "k3"])
def test_k1_and_k3_are_unbiased(kind):
    policy = LOGITS.log_softmax(-1)
    expectation = (policy.exp() * kl_estimate(kind, policy, REFERENCE)).sum()
    torch.testing.assert_close(expectation, kl(policy, REFERENCE), rtol=1e-12, atol=0)


def test_k2_agrees_to_second_order():
    policy = (REFERENCE + 1e-3 * LOGITS).log_softmax(-1)
    expectation = (policy.exp() * kl_estimate("k2", policy, REFERENCE)).sum()
    torch.testing.assert_close(expectation, kl(policy, REFERENCE), rtol=1e-3, atol=0)


def test_hand_computed_values():
    logprobs, reference = torch.tensor([-1.0, -2.0]).double(), torch.tensor([-2.0, -1.0]).double()
    assert kl_estimate("k1", logprobs, reference).tolist() == [1.0, -1.0]
    assert kl_estimate("k2", logprobs, reference).tolist() == [0.5, 0.5]
    e = torch.tensor(1.0).double().exp().item()
    assert kl_estimate("k3", logprobs, reference).tolist() == pytest.approx([1 / e, e - 2])


def test_k3_is_never_negative():
    log_ratio = torch.linspace(-30, 30, 1001)
    assert (kl_estimate("k3", log_ratio, torch.zeros(1001)) >= 0).all()


def test_mean_gradients_are_as_the_docstring_says():
    torch.testing.assert_close(mean_gradient("k1"), torch.zeros(4, dtype=torch.float64), atol=1e-12, rtol=0)
    torch.testing.assert_close(mean_gradient("k2"), gradient_of(lambda policy: kl(policy, REFERENCE)))
    torch.testing.assert_close(mean_gradient("k3"), gradient_of(lambda policy: kl(REFERENCE, policy)))


def test_a_token_that_the_policy_has_almost_ruled_out_does_not_overflow():
    logprobs = torch.tensor([-200.0], requires_grad=True)
    estimate = kl_estimate("k3", logprobs, torch.tensor([-1.0]))
    estimate.sum().backward()
    assert estimate.isfinite().all()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [0.0]


def test_a_clamp_bounds_k3_and_stops_its_gradient():
    logprobs = torch.tensor([-1.0, -4.0, 1.0], dtype=torch.float64, requires_grad=True)
    estimate = kl_estimate("k3", logprobs, torch.tensor([-0.5, -1.0, -0.5], dtype=torch.float64), clamp=10.0)
    estimate.sum().backward()
    assert estimate.tolist() == pytest.approx([math.exp(0.5) - 1.5, 10.0, math.exp(-1.5) + 0.5])
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == pytest.approx([1 - math.exp(0.5), 0.0, 1 - math.exp(-1.5)])
    assert kl_estimate("k3", torch.tensor([float("nan")]), torch.tensor([-1.0]), clamp=10.0).isnan().all()


def test_only_k3_has_a_clamp():
    with pytest.raises(ValidationError, match="clamp bounds the k3 estimate, but kind is k2"):
        KLConfig(kind="k2", clamp=10.0)


@pytest.mark.parametrize("broken", [float("nan"), float("-inf")])
@pytest.mark.parametrize("kind", ["k1", "k2", "k3"])
def test_non_finite_log_probabilities_stay_visible(kind, broken):
    assert not kl_estimate(kind, torch.tensor([broken]), torch.tensor([-1.0])).isfinite().any()
    assert not kl_estimate(kind, torch.tensor([-1.0]), torch.tensor([broken])).isfinite().any()
