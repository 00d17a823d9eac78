"""Inputs shared by the tests of the policy losses."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from cooper_lab.designs.cispo import CISPO
from cooper_lab.designs.gspo import GSPO
from cooper_rl.engines.losses.policy import (
    KLConfig,
    PolicyLossConfig,
    PolicyLossInputs,
    PPOClip,
    policy_loss,
)

ALL = [PPOClip(), GSPO(), CISPO()]


def one_row(ratios: list[float], advantages: list[float], weights: list[float] | None = None) -> PolicyLossInputs:
    """A completion whose tokens have these probability ratios, all with old probability 0.1."""
    old = torch.full((1, len(ratios)), 0.1, dtype=torch.float64).log()
    return PolicyLossInputs(
        logprobs=old + torch.tensor([ratios], dtype=torch.float64).log(),
        old_logprobs=old,
        sampler_logprobs=old.clone(),
        advantages=torch.tensor([advantages], dtype=torch.float64),
        weights=torch.tensor([weights or [1.0] * len(ratios)], dtype=torch.float64),
        mask=torch.ones(1, len(ratios), dtype=torch.bool),
    )


def random_inputs(spread: float, reference: bool = False, mismatch: float = 0.0) -> PolicyLossInputs:
    """Three completions of 5, 3 and 1 tokens with one advantage each; `spread` is the size of the log-ratios."""
    generator = torch.Generator().manual_seed(7)

    def normal() -> Tensor:
        return torch.randn(3, 5, dtype=torch.float64, generator=generator)

    mask = torch.arange(5) < torch.tensor([[5], [3], [1]])
    old = -normal().abs() - 0.1
    return PolicyLossInputs(
        logprobs=old + spread * normal(),
        old_logprobs=old,
        sampler_logprobs=old + mismatch * normal(),
        advantages=torch.tensor([[1.3], [-0.7], [-2.0]], dtype=torch.float64).expand(3, 5),
        weights=(torch.tensor([[0.1], [0.2], [0.3]], dtype=torch.float64) * mask),
        mask=mask,
        reference_logprobs=old + 0.3 * normal() if reference else None,
    )


def over_tensors(inputs: PolicyLossInputs, change: Callable[[Tensor], Tensor]) -> PolicyLossInputs:
    """The same record with every tensor changed."""
    return replace(inputs, **{name: change(value) for name, value in vars(inputs).items() if value is not None})


def gradient(inputs: PolicyLossInputs, loss: Callable[[PolicyLossInputs], Tensor]) -> Tensor:
    logprobs = inputs.logprobs.clone().requires_grad_()
    loss(replace(inputs, logprobs=logprobs)).backward()
    assert logprobs.grad is not None
    return logprobs.grad


def loss_gradient(inputs: PolicyLossInputs, config: PolicyLossConfig, kl: KLConfig | None = None) -> Tensor:
    return gradient(inputs, lambda given: policy_loss(given, config, kl).loss)
