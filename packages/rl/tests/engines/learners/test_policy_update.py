"""Stage 1 with a real learner in float64, compared with gradients derived by hand."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from shelf.process_credit import Delta, Steps, process_advantages, process_metrics
from torch import Tensor

from cooper_base.data.problem import Problem
from cooper_lab.designs.token_sum import SequenceMeanTokenSum
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.losses.policy import KLConfig, SequenceMeanTokenMean, TokenMean
from cooper_rl.policy.advantages import TokenCredit
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.policy.estimators import DrGRPO, ReinforcePPBaseline
from cooper_rl.policy.update import update_policy
from cooper_rl.records import Column, Ragged, Rollouts
from slow_members import first_fast

PROMPT = [3, 1]


class WatchedLearner(TorchPolicyLearner):
    """A learner that keeps the gradient of its last update."""

    gradient = torch.empty(0)

    def optim_step(self):
        gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in self.model.parameters()]
        self.gradient = torch.cat([gradient.flatten() for gradient in gradients])
        return super().optim_step()


def learner_of(model) -> WatchedLearner:
    return WatchedLearner(model, LearnerConfig(model="tiny", device="cpu", learning_rate=1e-3), 10)


def logprobs(model, completion: list[int], temperature: float = 1.0) -> Tensor:
    logits = model(torch.tensor([PROMPT + completion])).logits[0, len(PROMPT) - 1 : -1]
    return (logits / temperature).log_softmax(-1).gather(-1, torch.tensor(completion)[:, None])[:, 0]


def gradient_of(loss: Tensor, model) -> Tensor:
    return torch.cat([gradient.flatten() for gradient in torch.autograd.grad(loss, list(model.parameters()))])


def logprobs_of_all(model, completions: list[list[int]], temperature: float) -> Tensor:
    """Those of completions of one length [N, L], in one pass."""
    logits = model(torch.tensor([PROMPT + completion for completion in completions])).logits[:, len(PROMPT) - 1 : -1]
    return (logits / temperature).log_softmax(-1).gather(-1, torch.tensor(completions)[:, :, None])[:, :, 0]


def rollouts_of(model, groups: list[list[list[int]]], temperature: float = 1.0, cut: tuple[int, ...] = ()) -> Rollouts:
    """Rollouts of a sampler that agrees with the model; in each group the completions of these indices were cut off."""
    completions = [completion for group in groups for completion in group]
    with torch.no_grad():
        if len({len(completion) for completion in completions}) == 1:
            known = logprobs_of_all(model, completions, temperature).flatten()
        else:
            known = torch.cat([logprobs(model, completion, temperature) for completion in completions])
    return Rollouts(
        problems=[Problem(f"p{p}", "?", "1") for p in range(len(groups))],
        prompts=Column.of([PROMPT] * len(groups)),
        group_sizes=np.array([len(group) for group in groups]),
        token_ids=Column.of(completions),
        logprobs=known.numpy(),
        stopped=np.array([i not in cut for group in groups for i in range(len(group))]),
        texts=[""] * len(completions),
        versions=np.zeros(len(completions), int),
    )


@pytest.mark.parametrize("temperature", first_fast([0.5, 1.5, 1.0, 0.7], fast=2))
def test_the_gradient_is_that_of_the_expected_reward_at_the_sampling_temperature(make_policy, temperature):
    """The expectation is exact: all 216 completions of three tokens, each weighted by its probability."""
    model = make_policy(torch.float64, vocab_size=6)
    completions = [list(tokens) for tokens in product(range(6), repeat=3)]
    values = torch.randn(216, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    probabilities = logprobs_of_all(model, completions, temperature).sum(dim=1).exp()
    assert probabilities.sum().item() == pytest.approx(1)
    true = gradient_of((probabilities * values).sum(), model)

    weights = probabilities.detach()
    rewards = 216 * weights * (values - (weights * values).sum())  # their mean is 0: they are their own advantages
    algorithm = AlgorithmConfig(
        advantages=DrGRPO(), kl=None, aggregation=SequenceMeanTokenSum(normaliser=1), min_spread=0
    )
    learner = learner_of(model)
    rollouts = rollouts_of(model, [completions], temperature)
    sampling = SamplingParams(temperature=temperature)
    update_policy(learner, None, rollouts, Ragged(rewards, (216,)), algorithm, sampling)
    cosine = torch.cosine_similarity(-learner.gradient, true, dim=0)
    assert cosine.item() == pytest.approx(1, abs=1e-12)
    torch.testing.assert_close(-learner.gradient, true, rtol=0, atol=1e-12)


COMPLETIONS = [[[5, 6, 7], [8, 9], [4]], [[2, 2, 2, 2], [9], [7, 3]]]


def step(model, reference, rewards, cut: tuple[int, ...] = (), temperature: float = 0.7, **algorithm):
    """Runs one update on two groups; returns the learner and the metrics."""
    rollouts = rollouts_of(model, COMPLETIONS, temperature, cut)
    learner = learner_of(model)
    frozen = None if reference is None else TorchPolicyLearner(reference, learner.config, 0, trainable=False)
    config = AlgorithmConfig.model_validate({"min_spread": 0.01, **algorithm})
    sampling = SamplingParams(temperature=temperature, max_tokens=8)
    found = update_policy(learner, frozen, rollouts, Ragged.of(rewards, torch.float64), config, sampling)
    return learner, found.metrics


def k3(model, reference, completion: list[int], temperature: float = 0.7) -> Tensor:
    ratio = logprobs(reference, completion, temperature).detach() - logprobs(model, completion, temperature)
    return ratio.exp() - 1 - ratio


@pytest.fixture
def models(make_policy):
    """A policy in float64 and a reference that differs from it."""
    return make_policy(torch.float64, seed=0), make_policy(torch.float64, seed=1)


def test_rewards_that_are_all_alike_keep_their_pull_to_the_reference(models):
    model, reference = models
    everything = torch.cat([k3(model, reference, c) for group in COMPLETIONS for c in group])
    expected = gradient_of(0.3 * everything.mean(), model)
    learner, metrics = step(model, reference, [[0.9] * 3, [0.2] * 3], kl=KLConfig(coefficient=0.3))
    assert expected.norm() > 0.1
    torch.testing.assert_close(learner.gradient, expected, rtol=0, atol=1e-12)
    assert metrics["policy/usable_groups"] == 0
    assert metrics["policy/trained_completions"] == 1
    assert metrics["policy/grad_norm"] == pytest.approx(expected.norm().item())


@pytest.mark.parametrize("where", ["loss", "reward"])
@pytest.mark.parametrize("cut", [(), (0, 1, 2)])
def test_the_distance_to_the_reference_is_measured_on_all_rows(models, where, cut):
    """Includes groups without spread, and completions that are masked because they were cut off."""
    model, reference = models
    with torch.no_grad():
        expected = torch.cat([k3(model, reference, c) for group in COMPLETIONS for c in group]).mean().item()
    kl = KLConfig(coefficient=1e-6, where=where, clamp=1e-3)  # the metric is not clamped
    _, metrics = step(model, reference, [[0.9, 0.1, 0.5], [0.2] * 3], cut, kl=kl, overlong="mask")
    assert metrics["policy/usable_groups"] == 0.5
    assert metrics["policy/reference_kl"] == pytest.approx(expected)


@pytest.mark.parametrize("kl", [None, KLConfig(coefficient=0.3), KLConfig(coefficient=0.3, where="reward", kind="k1")])
@pytest.mark.parametrize("aggregation", [TokenMean(), SequenceMeanTokenMean(), SequenceMeanTokenSum(normaliser=8)])
def test_an_answer_without_an_opinion_is_as_if_it_had_not_been_sampled(make_policy, kl, aggregation):
    """The gradient is that of the step without it: it counts in no baseline, no denominator and no KL term."""
    rollouts, gradients = rollouts_of(make_policy(torch.float64), COMPLETIONS, 0.7), []
    rewards = Ragged.of([[1.0, 0.25, math.nan], [math.nan, 0.5, 0.0]], torch.float64)
    config = AlgorithmConfig(advantages=ReinforcePPBaseline(), kl=kl, aggregation=aggregation)
    kept = ~rewards.flat.isnan()
    for steps_rollouts, paid in ((rollouts, rewards), (rollouts.keep(kept.numpy()), rewards.keep(kept))):
        learner = learner_of(make_policy(torch.float64))
        reference = TorchPolicyLearner(make_policy(torch.float64, seed=1), learner.config, 0, trainable=False)
        found = update_policy(learner, reference, steps_rollouts, paid, config, SamplingParams(temperature=0.7))
        assert found.metrics["policy/usable_groups"] == 1
        gradients.append(learner.gradient)
    assert gradients[0].norm() > 0.01
    torch.testing.assert_close(gradients[0], gradients[1], rtol=0, atol=1e-12)


def test_without_a_kl_term_groups_without_spread_are_only_counted(models):
    """They stay out of the backward pass, and the gradient of the other group does not change."""
    model, _ = models
    advantages = [0.4, -0.4, 0.0]
    terms = [-a * logprobs(model, c, 0.7).sum() for a, c in zip(advantages, COMPLETIONS[0], strict=True)]
    expected = gradient_of(torch.stack(terms).sum() / 13, model)  # the step has 13 tokens in all
    learner, metrics = step(model, None, [[0.9, 0.1, 0.5], [0.2] * 3], kl=None, advantages=DrGRPO())
    torch.testing.assert_close(learner.gradient, expected, rtol=0, atol=1e-12)
    assert metrics["policy/trained_completions"] == 0.5
    assert "policy/reference_kl" not in metrics


def test_kl_in_the_reward_takes_the_recomputed_log_probabilities(models):
    """A sampler that reports other log-probabilities, here the reference's own, must not hide the distance."""
    model, reference = models
    rollouts = rollouts_of(reference, COMPLETIONS)
    with torch.no_grad():
        kl = [[(logprobs(model, c) - logprobs(reference, c)).sum() for c in group] for group in COMPLETIONS]
    rewards = -0.5 * torch.tensor(kl, dtype=torch.float64)
    frozen = TorchPolicyLearner(reference, learner_of(model).config, 0, trainable=False)
    in_reward = KLConfig(kind="k1", coefficient=0.5, where="reward")
    algorithm = AlgorithmConfig(kl=in_reward, advantages=DrGRPO(), min_spread=0, recompute_old_logprobs=True)
    zeros = Ragged(torch.zeros(6), (3, 3))
    found = update_policy(learner_of(model), frozen, rollouts, zeros, algorithm, SamplingParams())
    expected = rewards - rewards.mean(dim=1, keepdim=True)
    torch.testing.assert_close(found.advantages.flat.reshape(2, 3), expected.float())


def test_a_kl_term_needs_a_reference(models):
    for where in ("loss", "reward"):
        with pytest.raises(ValueError, match="reference"):
            step(models[0], None, [[0.9, 0.1, 0.5], [0.2] * 3], kl=KLConfig(where=where))


RAGGED = [[[5, 6, 7], [8, 9], [4], [1, 1]], [[2, 2, 2, 2], [9]], [[7, 3], [7], [6, 5, 4, 3, 2]]]
RAGGED_REWARDS = [[1.0, 0.0, 0.25, 0.5], [0.3, 0.8], [0.0, 1.0, 0.0]]


def test_ragged_groups_have_baselines_of_their_own(models):
    """Groups of 4, 2 and 3. Nine rewards would also fill 3 x 3, with other baselines and another gradient."""
    model, _ = models
    centred = [torch.tensor(row, dtype=torch.float64) - sum(row) / len(row) for row in RAGGED_REWARDS]
    terms = [
        -advantage * logprobs(model, completion, 0.7).sum()
        for group, advantages in zip(RAGGED, centred, strict=True)
        for completion, advantage in zip(group, advantages, strict=True)
    ]
    expected = gradient_of(torch.stack(terms).sum() / 21, model)  # tokens of the step
    learner = learner_of(model)
    algorithm = AlgorithmConfig(kl=None, advantages=DrGRPO(), min_spread=0)
    rewards = Ragged.of(RAGGED_REWARDS, torch.float64)
    rollouts = rollouts_of(model, RAGGED, 0.7)
    found = update_policy(learner, None, rollouts, rewards, algorithm, SamplingParams(temperature=0.7))
    torch.testing.assert_close(learner.gradient, expected, rtol=0, atol=1e-12)
    assert found.advantages.sizes == (4, 2, 3)
    torch.testing.assert_close(found.advantages.flat, torch.cat(centred).float())


def test_rewards_of_other_groups_are_refused(models):
    model, _ = models
    nine = Ragged(torch.arange(9.0), (3, 3, 3))
    with pytest.raises(ValueError, match=r"rewards have groups of sizes \(3, 3, 3\)"):
        update_policy(learner_of(model), None, rollouts_of(model, RAGGED), nine, AlgorithmConfig(), SamplingParams())


def test_drpo_has_the_gradient_of_its_papers_loss(models):
    """Two right answers and two wrong ones; of the other two groups, one has no wrong answer and one no spread."""
    model, _ = models
    s = torch.stack([logprobs(model, completion, 0.7).mean() for completion in RAGGED[0]])
    weights = torch.tensor([-3 / 8, -1 / 8], dtype=torch.float64).div(0.1).softmax(0)  # lengths 3 and 1 of 8
    paper = -(weights * (s[[0, 2]] - 10 * (s[[1, 3]] / 10).exp().sum().log())).sum()
    expected = gradient_of(paper, model) / 9
    learner = learner_of(model)
    settings = {"kl": None, "advantages": {"kind": "shelf.drpo:DRPO", "max_tokens": 8}}
    algorithm = AlgorithmConfig.model_validate({**settings, "aggregation": {"kind": "sequence_mean_token_mean"}})
    rewards = Ragged.of([[1.0, 0.0, 0.9, 0.1], [0.6, 0.8], [0.2] * 3], torch.float64)
    update_policy(learner, None, rollouts_of(model, RAGGED, 0.7), rewards, algorithm, SamplingParams(temperature=0.7))
    torch.testing.assert_close(learner.gradient, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("outcome_weight", [0.0, 0.5])
def test_process_credit_gives_every_token_its_own_advantage(models, outcome_weight):
    """A group teaches by its steps even if all of its rewards are alike."""
    model, _ = models
    spans = [[(0, 1), (1, 3)], [(0, 2)], [(0, 1)], [(0, 2), (2, 4)], [(0, 1)], [(0, 2)]]
    generator = torch.Generator().manual_seed(1)
    steps = [Steps(own, torch.rand(len(own), dtype=torch.float64, generator=generator) - 0.5) for own in spans]
    credit = Delta(outcome_weight=outcome_weight, outcome=DrGRPO())
    per_token = process_advantages(steps, [3, 3], [3, 2, 1, 4, 1, 2], credit)
    outcome = [0.4, -0.4, 0.0, 0.0, 0.0, 0.0]
    terms = [
        -((torch.from_numpy(process) + outcome_weight * whole) * logprobs(model, c, 0.7)).sum()
        for process, whole, c in zip(per_token, outcome, [c for group in COMPLETIONS for c in group], strict=True)
    ]
    expected = gradient_of(torch.stack(terms).sum() / 13, model)
    learner = learner_of(model)
    algorithm = AlgorithmConfig(kl=None, advantages=credit)
    rewards = Ragged.of([[0.9, 0.1, 0.5], [0.2] * 3], torch.float64)
    rollouts, sampling = rollouts_of(model, COMPLETIONS, 0.7), SamplingParams(temperature=0.7)
    found = update_policy(
        learner, None, rollouts, rewards, algorithm, sampling, TokenCredit(per_token, process_metrics(steps))
    )
    torch.testing.assert_close(learner.gradient, expected, rtol=0, atol=1e-12)
    for name in ("policy/usable_groups", "process/usable_groups", "policy/trained_completions"):
        assert found.metrics[name] == 1
    means = [row.mean() + outcome_weight * whole for row, whole in zip(per_token, outcome, strict=True)]
    assert found.advantages.flat.tolist() == pytest.approx(means, abs=1e-6)
