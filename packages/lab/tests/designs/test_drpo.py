"""DRPO's advantages against the paper's loss, written out with autograd in float64."""

import pytest
import torch
from shelf.drpo import DRPO

from cooper_base.config.checking import Settings, check_settings
from cooper_base.errors import InputError
from cooper_rl.policy.advantages import Completions, estimate
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.records import Ragged


def found(rewards, lengths, mean_logprobs, **settings):
    completions = Completions(Ragged.of(lengths), Ragged.of(mean_logprobs, torch.float64))
    config = DRPO(max_tokens=100, **settings)
    return estimate(Ragged.of(rewards, torch.float64), config, completions=completions).advantages


def papers_loss(rewards, lengths, scores, config):
    """One group: -sum over positives of w (s - tau log sum over negatives of exp(s / tau))."""
    positive, tau = rewards >= config.threshold, config.temperature
    weights = ((1 - lengths / config.max_tokens) / config.length_temperature).exp()[positive]
    against = tau * (scores[~positive] / tau).exp().sum().log()
    return -((weights / weights.sum()) * (scores[positive] - against)).sum()


def test_known_values():
    # Two right answers of 20 and 50 tokens: e^3 : 1. Two wrong ones of -1.5 and -1 nats: e^-0.05 : 1.
    result = found([[1.0, 1.0, 0.0, 0.0]], [[20, 50, 30, 30]], [[-1.0, -2.0, -1.5, -1.0]])
    assert result.rows()[0] == pytest.approx([0.95257, 0.04743, -0.48750, -0.51250], abs=1e-5)


def test_the_advantages_are_minus_the_gradient_of_the_papers_loss():
    generator = torch.Generator().manual_seed(0)
    config = DRPO(max_tokens=100, length_temperature=0.3, temperature=0.7)
    sizes, rows = (6, 3, 8), []
    for size in sizes:
        rewards = torch.rand(size, generator=generator, dtype=torch.float64)
        rewards[:2] = torch.tensor([1.0, 0.0])
        lengths = torch.randint(1, 100, (size,), generator=generator)
        scores = (-2 * torch.rand(size, generator=generator, dtype=torch.float64)).requires_grad_()
        (gradient,) = torch.autograd.grad(papers_loss(rewards, lengths, scores, config), scores)
        rows.append((rewards, lengths, scores.detach(), -gradient))
    result = found(*([row[k] for row in rows] for k in range(3)), length_temperature=0.3, temperature=0.7)
    torch.testing.assert_close(result.flat, torch.cat([row[3] for row in rows]))
    assert torch.stack([group.sum() for group in result.groups()]).abs().max() < 1e-12


def test_a_group_of_right_answers_alone_or_wrong_ones_alone_teaches_nothing():
    result = found([[0.9, 0.7], [0.1, 0.3], [1.0, 0.0]], [[1, 2]] * 3, [[-1.0, -2.0]] * 3)
    assert result.rows() == [[0.0, 0.0], [0.0, 0.0], [1.0, -1.0]]


def test_the_aggregation_must_weigh_completions_equally():
    drpo = {"advantages": {"kind": "shelf.drpo:DRPO", "max_tokens": 8}}
    with pytest.raises(InputError, match="sequence_mean_token_mean"):
        check_settings(AlgorithmConfig, Settings(drpo))
    check_settings(AlgorithmConfig, Settings({**drpo, "aggregation": {"kind": "sequence_mean_token_mean"}}))
