"""A reward-model learner: scores, losses and gradients, skipped updates, and what it saves.

Every test runs with a head of one output, and with a language model that is asked (yes minus no over all its logits).
"""

import math

import plain
import pytest
import torch

from cooper_rl.engines.base import LabelledBatch, PairBatch
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.losses.reward_model import BinaryCrossEntropyLoss, PairwiseLoss, bce_loss
from slow_members import first_fast

LENGTHS = [5, 17, 1, 9, 30, 2]


@pytest.fixture(params=["reward_model", "judge"])
def folder(request, folders):
    return folders / request.param


def config(folder, **changes) -> LearnerConfig:
    settings = {"model": str(folder), "learning_rate": 1e-2, **plain.ON}
    return LearnerConfig.model_validate({**settings, **changes})


def rows(seed: int, low: int = 1) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(low, 40, (length,), generator=generator).tolist() for length in LENGTHS]


def test_scores_are_those_of_each_row_alone_in_any_order(engine, folder):
    learner = engine.reward_model(config(folder, tokens_per_microbatch=64), 10, False)
    scores = learner.score(rows(0))
    assert scores.dtype == torch.float32
    with torch.no_grad():
        expected = plain.logits(plain.scorer(folder), rows(0)).float()
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(learner.score(rows(0)[::-1]).flip(0), expected, rtol=0, atol=1e-5)


def test_a_row_may_end_with_the_padding_token(engine, folder):
    """End-of-sequence is often also the padding token. The score is still read at that token."""
    learner = engine.reward_model(config(folder), 10, False)
    ended, bare = learner.score([[5, 6, 0], [5, 6]])
    assert abs(ended - bare) > 1e-3
    torch.testing.assert_close(learner.score([[5, 6, 0]])[0], ended, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    first_fast([{"tokens_per_microbatch": 40}, {"attention": "padded"}, {}, {"gradient_checkpointing": True}], fast=2),
)
def test_pairs_give_the_plain_loss_and_gradient(engine, folder, tmp_path, changes):
    model = plain.scorer(folder)
    batch = PairBatch(rows(1), rows(2)[::-1], [0.1, 0.2, 0.3, 0.15, 0.05, 0.2])
    positive, negative = plain.logits(model, batch.positives), plain.logits(model, batch.negatives)
    expected = PairwiseLoss(anchor=0.5).pair_loss(positive, negative, torch.tensor(batch.weights).double())
    learner = engine.reward_model(plain.revealing(folder, **changes), 10, True)
    metrics = learner.forward_backward(batch, PairwiseLoss(anchor=0.5))
    assert metrics["loss"] == pytest.approx(expected.loss.item(), abs=1e-5)
    assert metrics["margin"] == pytest.approx(expected.metric_sums["margin"].item() / len(LENGTHS), abs=1e-4)
    assert metrics["pair_accuracy"] == expected.metric_sums["pair_accuracy"].item() / len(LENGTHS)
    found = plain.revealed_gradient(learner, tmp_path)
    torch.testing.assert_close(found, plain.gradient(model, expected.loss), rtol=1e-4, atol=1e-5)


def test_labelled_rows_give_the_plain_loss_and_gradient(engine, folder, tmp_path):
    model = plain.scorer(folder)
    batch = LabelledBatch(rows(3), [1.0, 0.0, 1.0, 0.0, 0.3, 1.0], [1 / 6] * 6)
    labels, weights = (torch.tensor(values).double() for values in (batch.labels, batch.weights))
    expected = bce_loss(plain.logits(model, batch.token_ids), labels, weights)
    learner = engine.reward_model(plain.revealing(folder), 10, True)
    metrics = learner.forward_backward(batch, BinaryCrossEntropyLoss())
    assert metrics["loss"] == pytest.approx(expected.loss.item(), abs=1e-5)
    found = plain.revealed_gradient(learner, tmp_path)
    torch.testing.assert_close(found, plain.gradient(model, expected.loss), rtol=1e-4, atol=1e-5)


def test_a_loss_that_does_not_fit_its_batch_is_refused(engine, folder):
    learner = engine.reward_model(config(folder), 1, True)
    with pytest.raises(TypeError, match="PairwiseLoss does not take a LabelledBatch"):
        learner.forward_backward(LabelledBatch([[1]], [1.0], [1.0]), PairwiseLoss())


def test_a_non_finite_loss_is_reported_and_skipped(engine, folder):
    learner = engine.reward_model(config(folder), 1, True)
    assert math.isnan(learner.forward_backward(PairBatch([[1]], [[2]], [math.nan]), PairwiseLoss())["loss"])
    assert learner.optim_step()["skipped_updates"] == 1


def test_what_is_saved_scores_the_same_and_resumes(engine, folder, tmp_path):
    learner = engine.reward_model(config(folder), 9, True)
    batch = PairBatch(rows(1), rows(2), [1 / 6] * 6)
    for _ in range(2):
        learner.forward_backward(batch, PairwiseLoss())
        learner.optim_step()
    learner.save(tmp_path / "saved")
    with torch.no_grad():
        expected = plain.logits(plain.scorer(tmp_path / "saved"), rows(0)).float()
    torch.testing.assert_close(learner.score(rows(0)), expected, rtol=0, atol=1e-5)
    resumed = engine.reward_model(config(folder), 9, True)
    resumed.load(tmp_path / "saved")
    for each in (learner, resumed):
        each.forward_backward(batch, PairwiseLoss())
        each.optim_step()
    torch.testing.assert_close(resumed.score(rows(0)), learner.score(rows(0)), rtol=0, atol=0)
