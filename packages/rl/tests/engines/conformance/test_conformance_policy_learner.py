"""A policy learner: log-probabilities, losses and gradients, updates, and what it saves."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import plain
import pytest
import torch

from cooper_lab.designs.cispo import CISPO
from cooper_lab.designs.gspo import GSPO
from cooper_rl.engines.base import PolicyBatch
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.losses.policy import (
    KLConfig,
    PolicyLossInputs,
    PolicyObjective,
    PPOClip,
    policy_loss,
)
from cooper_rl.records import Column, offsets_of
from slow_members import first_fast

PROMPTS = [7, 3, 12, 2, 5, 9]  # tokens
LENGTHS = np.array([4, 9, 1, 6, 5, 2])  # of the completions
TOKENS = int(LENGTHS.sum())


def config(folder, **changes) -> LearnerConfig:
    settings = {"model": str(folder / "policy"), "learning_rate": 1e-2, **plain.ON}
    return LearnerConfig.model_validate({**settings, **changes})


def rows() -> Column:
    """Rows of which the second and the fourth share a prefix with the first."""
    random = np.random.default_rng(1)
    drawn = [random.integers(1, 40, size=p + c) for p, c in zip(PROMPTS, LENGTHS, strict=True)]
    drawn[1][:3], drawn[3][:5] = drawn[0][:3], drawn[0][:5]
    return Column.of(drawn)


def plain_logprobs(model, temperature: float) -> torch.Tensor:
    return torch.cat([plain.logprobs(model, row, c, temperature) for row, c in zip(rows(), LENGTHS, strict=True)])


def batch(folder, temperature: float = 1.0) -> PolicyBatch:
    """Old log-probabilities that differ a little from the model's, so ratios differ from 1 and some are clipped."""
    random = np.random.default_rng(2)
    with torch.no_grad():
        exact = plain_logprobs(plain.causal(folder / "policy"), temperature).numpy()
    old, sampler, reference = (exact + scale * random.standard_normal(TOKENS) for scale in (0.2, 0.3, 0.2))
    advantages = np.repeat([1.0, -2.0, 3.0, -4.0, 5.0, -6.0], LENGTHS)
    weights = np.full(TOKENS, 1 / TOKENS)
    return PolicyBatch(rows(), LENGTHS, advantages, weights, old, sampler, reference, temperature)


def plain_outputs(model, given: PolicyBatch, objective: PolicyObjective):
    """Loss and metrics, computed for every row alone."""
    lengths = LENGTHS.tolist()
    names = ("advantages", "weights", "old_logprobs", "sampler_logprobs", "reference_logprobs")
    columns = {name: torch.from_numpy(getattr(given, name)).split(lengths) for name in names}
    found = plain_logprobs(model, given.temperature).split(lengths)
    outputs = [
        policy_loss(
            PolicyLossInputs(
                logprobs=found[i][None],
                mask=torch.ones(1, lengths[i], dtype=torch.bool),
                **{name: values[i][None] for name, values in columns.items()},
            ),
            objective.loss,
            objective.kl,
        )
        for i in range(len(lengths))
    ]
    metrics = {
        name: sum(float(o.metric_sums[name].detach()) for o in outputs) / TOKENS for name in outputs[0].metric_sums
    }
    return torch.stack([o.loss for o in outputs]).sum(), metrics


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_logprobs_are_those_of_each_row_alone(engine, folders, temperature):
    learner = engine.policy(config(folders, tokens_per_microbatch=40), 10, False)
    found = learner.logprobs(rows(), LENGTHS, temperature)
    assert found.shape == (TOKENS,)
    with torch.no_grad():
        expected = plain_logprobs(plain.causal(folders / "policy"), temperature).numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_the_order_of_rows_changes_nothing(engine, folders):
    learner = engine.policy(config(folders), 10, False)
    column, order = Column(learner.logprobs(rows(), LENGTHS), offsets_of(LENGTHS)), [3, 0, 5, 2, 1, 4]
    np.testing.assert_allclose(
        learner.logprobs(rows().take(order), LENGTHS[order]), column.take(order).values, rtol=0, atol=1e-5
    )


def test_a_completion_without_prompt_has_no_first_logprob(engine, folders):
    learner = engine.policy(config(folders), 1, False)
    with pytest.raises(ValueError, match="prompt token"):
        learner.logprobs(Column.of([[1, 2]]), np.array([2]))


CHANGES: dict[str, dict[str, Any]] = {
    "whole": {},
    "rows alone": {"tokens_per_microbatch": 1},
    "micro-batches": {"tokens_per_microbatch": 30},
    "padded": {"attention": "padded"},
    "checkpointing": {"gradient_checkpointing": True},
}
LOSSES = {
    "TIS": PPOClip(truncated_importance_sampling=1.2),
    "ppo_clip": PPOClip(),
    "gspo": GSPO(clip_low=0.1, clip_high=0.1),
    "cispo": CISPO(),
}
BOTH = sorted(product(LOSSES, CHANGES), key=lambda names: names[0] != "TIS" and names[1] != "whole")
"""Every loss with every way to cut a batch. Fast are every loss on the whole batch, and every way with one loss."""


@pytest.mark.parametrize(("loss", "change"), first_fast(BOTH, fast=len(CHANGES) + len(LOSSES) - 1))
def test_loss_metrics_and_gradient_are_the_plain_ones(engine, folders, tmp_path, loss, change):
    objective, given = PolicyObjective(loss=LOSSES[loss], kl=KLConfig(coefficient=0.3)), batch(folders, temperature=0.7)
    model = plain.causal(folders / "policy")
    expected_loss, expected_metrics = plain_outputs(model, given, objective)
    expected = plain.gradient(model, expected_loss)
    learner = engine.policy(plain.revealing(folders / "policy", **CHANGES[change]), 10, True)
    metrics = learner.forward_backward(given, objective)
    assert metrics.pop("loss") == pytest.approx(expected_loss.item(), abs=1e-5)
    assert metrics == pytest.approx(expected_metrics, abs=1e-5)
    torch.testing.assert_close(plain.revealed_gradient(learner, tmp_path), expected, rtol=1e-4, atol=1e-5)


def test_the_gradient_is_clipped_and_its_norm_is_from_before(engine, folders, tmp_path):
    objective, given = PolicyObjective(loss=PPOClip(), kl=None), batch(folders)
    model = plain.causal(folders / "policy")
    expected = plain.gradient(model, plain_outputs(model, given, objective)[0])
    norm = torch.stack([g.norm() for g in expected.values()]).norm().item()
    learner = engine.policy(plain.revealing(folders / "policy", max_grad_norm=plain.ADAMW_EPS / 10), 10, True)
    learner.save(tmp_path / "start")
    learner.forward_backward(given, objective)
    assert learner.optim_step()["grad_norm"] == pytest.approx(norm, rel=1e-4)
    learner.load(tmp_path / "start")
    learner.forward_backward(given, objective)
    clipped = plain.revealed_gradient(learner, tmp_path)
    torch.testing.assert_close(clipped, {name: g / 10 for name, g in expected.items()}, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_non_finite_update_is_skipped_counted_and_forgotten(engine, folders, tmp_path, bad):
    learner = engine.policy(config(folders), 10, True)
    before, objective, good = (
        plain.weights(learner, tmp_path / "a"),
        PolicyObjective(loss=PPOClip(), kl=None),
        batch(folders),
    )
    poisoned = replace(good, weights=np.full(TOKENS, bad))
    assert not math.isfinite(learner.forward_backward(poisoned, objective)["loss"])
    assert learner.optim_step()["skipped_updates"] == 1
    torch.testing.assert_close(plain.weights(learner, tmp_path / "b"), before, rtol=0, atol=0)
    learner.forward_backward(good, objective)
    metrics = learner.optim_step()
    assert metrics["skipped_updates"] == 1
    assert math.isfinite(metrics["grad_norm"])
    after = plain.weights(learner, tmp_path / "c")
    assert any(not torch.equal(after[name], value) for name, value in before.items())


def test_the_schedule_is_followed(engine, folders):
    learner = engine.policy(config(folders, learning_rate=1.0, warmup_steps=2, schedule="cosine"), 4, True)
    rates = []
    for _ in range(5):
        learner.forward_backward(batch(folders), PolicyObjective(loss=PPOClip(), kl=None))
        rates.append(learner.optim_step()["learning_rate"])
    assert rates == pytest.approx([0.5, 1.0, 1.0, 0.5, 0.0])


def test_a_frozen_learner_scores_and_does_not_learn(engine, folders):
    learner = engine.policy(config(folders), 0, False)
    assert len(learner.logprobs(rows(), LENGTHS)) == TOKENS
    with pytest.raises(RuntimeError, match="frozen"):
        learner.forward_backward(batch(folders), PolicyObjective(loss=PPOClip(), kl=None))
    with pytest.raises(RuntimeError, match="frozen"):
        learner.optim_step()


def test_a_resumed_learner_goes_on_bit_for_bit(engine, folders, tmp_path):
    def train(learner, updates: int) -> None:
        for _ in range(updates):
            learner.forward_backward(batch(folders), PolicyObjective(loss=PPOClip(), kl=None))
            learner.optim_step()

    settings = config(folders, warmup_steps=3, schedule="cosine")
    through, first = engine.policy(settings, 6, True), engine.policy(settings, 6, True)
    train(through, 4)
    train(first, 2)
    first.save(tmp_path / "saved")
    second = engine.policy(settings.model_copy(update={"model": str(folders / "other_policy")}), 6, True)
    second.load(tmp_path / "saved")
    train(second, 2)
    expected = plain.weights(through, tmp_path / "through")
    torch.testing.assert_close(plain.weights(second, tmp_path / "second"), expected, rtol=0, atol=0)
