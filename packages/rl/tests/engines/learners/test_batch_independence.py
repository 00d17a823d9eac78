"""The score of a row and the gradient of a batch do not depend on how rows are batched."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from transformers import PreTrainedModel

from cooper_lab.designs.cispo import CISPO
from cooper_lab.designs.gspo import GSPO
from cooper_rl.engines.base import LabelledBatch, PairBatch, PolicyBatch
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.cpu.linear import FastLinear, has_onednn, use_fast_linear
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.losses.policy import KLConfig, PolicyObjective, PPOClip
from cooper_rl.engines.losses.reward_model import BinaryCrossEntropyLoss, PairwiseLoss
from cooper_rl.records import Column

quick = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
token_rows = st.lists(st.lists(st.integers(1, 63), min_size=1, max_size=40), min_size=2, max_size=8)
budgets = st.integers(1, 400) | st.just(1_000_000)


def config(budget: int) -> LearnerConfig:
    return LearnerConfig.model_validate({"model": "tiny", "device": "cpu", "tokens_per_microbatch": budget})


def reward_learner(
    make: Callable[..., PreTrainedModel], dtype: torch.dtype, layer: type[nn.Linear]
) -> TorchRewardModelLearner:
    # Large enough that oneDNN is used from a few tokens on.
    model = make(dtype, hidden_size=128, intermediate_size=768, num_hidden_layers=1)
    learner = TorchRewardModelLearner(model, config(1), 10)
    use_fast_linear(model, layer)
    return learner


def loss_of_row(learner: TorchRewardModelLearner, rows: list[list[int]], row: int) -> float:
    """-log sigmoid(logit) of one row in a batch with the others, in the model's own precision."""
    weights = [float(i == row) for i in range(len(rows))]
    batch = LabelledBatch(rows, [1.0] * len(rows), weights)
    return learner.forward_backward(batch, BinaryCrossEntropyLoss())["loss"]


ONEDNN = pytest.param(
    torch.float32, FastLinear, 1e-5, marks=pytest.mark.skipif(not has_onednn(), reason="this PyTorch has no oneDNN")
)


@pytest.mark.parametrize(
    ("dtype", "layer", "tolerance"), [(torch.float64, nn.Linear, 1e-10), (torch.float32, nn.Linear, 1e-5), ONEDNN]
)
def test_a_row_scores_the_same_in_any_company_order_and_micro_batch(make_reward_model, dtype, layer, tolerance):
    learner = reward_learner(make_reward_model, dtype, layer)

    @quick
    @given(token_rows, st.randoms(use_true_random=False), budgets)
    def run(rows, random, budget):
        learner.config = config(1_000_000)
        alone = [loss_of_row(learner, [row], 0) for row in rows]
        scores = torch.cat([learner.score([row]) for row in rows])
        learner.config = config(budget)
        order = random.sample(range(len(rows)), len(rows))
        shuffled = [rows[i] for i in order]
        torch.testing.assert_close(learner.score(shuffled), scores[order], rtol=0, atol=1e-5)
        chosen = random.randrange(len(rows))
        assert loss_of_row(learner, shuffled, chosen) == pytest.approx(alone[order[chosen]], abs=tolerance)

    run()


@pytest.mark.parametrize("side", ["left", "right"])
def test_plain_transformers_gives_the_same_scores_whichever_side_it_pads(make_reward_model, side):
    learner = reward_learner(make_reward_model, torch.float32, nn.Linear)
    rows = [[3, 4, 5], [9], [7] * 20, [11, 12]]
    width = max(map(len, rows))
    padding = [[0] * (width - len(row)) for row in rows]
    padded = [p + row if side == "left" else row + p for p, row in zip(padding, rows, strict=True)]
    tokens = torch.tensor(padded)
    with torch.no_grad():
        plain = learner.model(tokens, attention_mask=(tokens != 0).long()).logits[:, 0]
    torch.testing.assert_close(learner.score(rows), plain, rtol=0, atol=1e-5)


def gradients(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return found


def policy_batch(rows: list[list[int]]) -> PolicyBatch:
    random = np.random.default_rng(sum(map(len, rows)))
    lengths = np.array([max(1, len(row) // 2) for row in rows])
    tokens = lengths.sum()
    advantages, old, sampler, reference = (mean + random.standard_normal(tokens) for mean in (0, -4, -4, -4))
    token_ids = Column.of([[1, *row] for row in rows])
    return PolicyBatch(token_ids, lengths, advantages, np.full(tokens, 1 / tokens), old, sampler, reference)


def check_resharding(learner, batch, loss, budget: int) -> None:
    learner.config = config(1_000_000)
    whole_loss = learner.forward_backward(batch, loss)["loss"]
    whole = gradients(learner.model)
    learner.config = config(budget)
    assert learner.forward_backward(batch, loss)["loss"] == pytest.approx(whole_loss, abs=1e-10)
    assert all(math.isfinite(value.norm()) for value in whole.values())
    torch.testing.assert_close(gradients(learner.model), whole, rtol=0, atol=1e-10)


def test_gradients_do_not_depend_on_the_micro_batches(make_reward_model, make_policy):
    reward_model = TorchRewardModelLearner(make_reward_model(torch.float64), config(1), 10)
    policy = TorchPolicyLearner(make_policy(torch.float64), config(1), 10)
    losses = (PPOClip(truncated_importance_sampling=2.0), GSPO(), CISPO())

    @quick
    @given(token_rows, budgets)
    def run(rows, budget):
        share = [1 / len(rows)] * len(rows)
        check_resharding(reward_model, PairBatch(rows, rows[::-1], share), PairwiseLoss(anchor=0.5), budget)
        labels = [float(i % 2) for i in range(len(rows))]
        check_resharding(reward_model, LabelledBatch(rows, labels, share), BinaryCrossEntropyLoss(), budget)
        for loss in losses:
            check_resharding(policy, policy_batch(rows), PolicyObjective(loss=loss, kl=KLConfig()), budget)

    run()
