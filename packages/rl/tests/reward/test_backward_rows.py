"""An update without the rows that hardly matter: its error, its metrics, and which rows those are."""

import math
from dataclasses import replace

import pytest
import torch

from cooper_base.data.labelled import LabelledCompletion
from cooper_rl.engines.base import LabelledBatch, PairBatch
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.losses.reward_model import BinaryCrossEntropyLoss, PairwiseLoss, bce_loss
from cooper_rl.reward import update
from cooper_rl.reward.cooptimization_config import CooptimizationConfig
from cooper_rl.reward.pairs.base import Pair
from cooper_rl.reward.recipes import RECIPES
from cooper_rl.reward.row_selection import Part, needed, pulls, spread_over_origins, without_negligible
from cooper_rl.reward.update import update_reward_model
from cooptimization_cases import answer_text  # pyright: ignore[reportMissingImports]

LIGHT = RECIPES["cooper_light"]["cooptimization"]

LABELLED = [LabelledCompletion("What is 7 + 0?", "7", answer_text(n), float(n == 7)) for n in range(4, 10)]


def decided(learner: TorchRewardModelLearner) -> TorchRewardModelLearner:
    """A learner whose logits differ by tens, so that many rows are settled. A new model's are all near 0."""
    with torch.no_grad():
        learner.model.get_submodule("score").weight.mul_(300.0)  # pyright: ignore[reportCallIssue, reportArgumentType]
    return learner


def some_pairs(count: int = 12) -> list[Pair]:
    return [
        Pair(str(n), f"What is {n} + 0?", str(n), answer_text(n), answer_text(n + 5, work), "rollout", "on_policy")
        for n in range(10, 10 + count)
        for work in ("Guessing.", "Adding up.")
    ]


def rows(count: int, seed: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(3, 30, (count,), generator=generator).tolist()
    return [torch.randint(2, 90, (length,), generator=generator).tolist() for length in lengths]


def norms(model, logits: list[torch.Tensor]) -> torch.Tensor:
    """The norm of each logit's gradient."""
    weights = list(model.parameters())
    found = [torch.autograd.grad(logit, weights, retain_graph=True, allow_unused=True) for logit in logits]
    return torch.stack([torch.cat([g.flatten() for g in one if g is not None]).norm() for one in found])


@pytest.mark.parametrize("share", [0.01, 0.1, 0.4])
def test_the_gradients_error_is_at_most_what_the_skipped_logits_pull_at_the_weights(make_learner, share):
    """Against plain float64, row by row. What is skipped pulls at most the share, and its error is no larger."""
    learner = decided(make_learner())
    model = learner.model.double()
    pairs = PairBatch(rows(20, 1), rows(20, 2), [0.05] * 20)
    labelled = LabelledBatch(rows(8, 5), [0.0, 1.0] * 4, [1 / 8] * 8)
    anchored = PairwiseLoss(anchor=0.5)
    parts = [Part("", pairs, anchored), Part("labelled_", labelled, BinaryCrossEntropyLoss())]
    alone = [model(torch.tensor([row])).logits[0, 0] for row in pairs.inputs + labelled.inputs]
    logits = torch.stack(alone).detach().requires_grad_()
    positive, negative, rest = logits.split([20, 20, 8])
    weights, shares, labels = (
        logits.new_tensor(values) for values in (pairs.weights, labelled.weights, labelled.labels)
    )
    loss = anchored.pair_loss(positive, negative, weights).loss + bce_loss(rest, labels, shares).loss
    pull = torch.autograd.grad(loss, logits)[0].abs()

    kept, _ = without_negligible(parts, list(logits.detach().split([40, 8])), share)
    left = [row for part in kept for row in part.batch.inputs]
    skipped = torch.tensor([row not in left for row in pairs.inputs + labelled.inputs])

    def accumulated(some: list[Part]) -> torch.Tensor:
        model.zero_grad()
        for part in some:
            learner.forward_backward(part.batch, part.loss)
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    error = (accumulated(parts) - accumulated(kept)).norm()
    steepness = norms(model, alone)
    assert pull[skipped].sum() <= share * pull.sum()
    assert 0 < error <= (pull * steepness)[skipped].sum()
    assert (pull * steepness)[skipped].sum() <= share * pull.sum() * steepness.max()


def test_pull_is_how_fast_the_loss_changes_with_the_logits():
    pair = Part("", PairBatch([[1]], [[2]], [0.5]), PairwiseLoss(anchor=0))
    pull, metrics = pulls(pair, torch.tensor([1.5, 0.0]))
    assert pull.tolist() == pytest.approx([2 * 0.5 / (1 + math.exp(1.5))])
    assert metrics == pytest.approx({"loss": 0.5 * math.log1p(math.exp(-1.5)), "pair_accuracy": 1.0, "margin": 1.5})


@pytest.mark.parametrize(
    ("pull", "share", "kept"),
    [
        ([1.0, 94.0, 2.0, 3.0], 0.05, [1, 3]),
        ([1.0, 94.0, 2.0, 3.0], 0.06, [1]),
        ([0.0, 5.0], 1e-9, [1]),
        ([0.0, 0.0], 0.5, [0, 1]),
        ([math.nan, 1.0], 0.5, [0, 1]),
        ([math.inf, 1.0], 0.5, [0, 1]),
    ],
)
def test_the_smallest_pulls_are_skipped_as_long_as_their_sum_is_at_most_the_share(pull, share, kept):
    assert needed(torch.tensor(pull, dtype=torch.float64), share).nonzero().flatten().tolist() == kept


def test_settled_pairs_are_those_whose_own_loss_hardly_pulls_whatever_they_weigh():
    logits = torch.tensor([3.0, 4.0, 0.0, math.nan, -3.0, -4.0, 0.0, 0.0])
    for weight in (1.0, 1e-6):
        pairs = Part("", PairBatch([[1]] * 4, [[2]] * 4, [weight] * 4), PairwiseLoss())
        pull = (pulls(pairs, logits)[0] / weight).tolist()
        assert pull[2] == pytest.approx(1.25)
        kept, metrics = without_negligible([pairs], [logits], 0.0, settled_below=pull[0] * 0.999)
        assert metrics["reward_model/skipped"] == 1
        assert len(kept[0].batch.weights) == 3


@pytest.mark.parametrize("logit", [0.0, 5.0, math.nan])
@pytest.mark.parametrize("below", [0.0, 0.05])
def test_a_row_of_weight_0_is_settled(logit, below):
    """It moves nothing, so it needs no backward pass, and is no reason to draw past pairs."""
    rows = LabelledBatch([[1], [2]], [0.0, 0.0], [0.0, 0.5])
    part = Part("labelled_", rows, BinaryCrossEntropyLoss())
    kept, metrics = without_negligible([part], [torch.tensor([logit, 0.0])], 0.0, settled_below=below)
    assert [one.batch.weights for one in kept] == [[0.5]]
    assert metrics["reward_model/labelled_skipped"] == 1


LEAST = {"skip_gradient_share": 1e-300}
"""Rows are left out only if they are settled."""


def test_an_update_without_an_unsettled_row_leaves_the_weights_and_scores_nothing_again(
    make_learner, encoder, monkeypatch
):
    monkeypatch.setattr(update, "SETTLED_BELOW", 3)
    learner = decided(make_learner(learning_rate=1e-3))
    before = [parameter.clone() for parameter in learner.model.parameters()]
    config = CooptimizationConfig.model_validate(LIGHT | LEAST)
    pairs, metrics = update_reward_model(some_pairs(), learner, encoder, config, some_pairs, lambda: LABELLED)
    assert metrics["reward_model/skipped"] == len(pairs)
    assert metrics["pairs/replayed"] == 0
    assert learner.steps == 1
    assert all(torch.equal(one, two) for one, two in zip(before, learner.model.parameters(), strict=True))
    assert all(pair.positive_logit_after == pair.positive_logit_before for pair in pairs)


def test_unpaired_completions_that_weigh_nothing_are_no_reason_to_draw_past_pairs(make_learner, encoder, monkeypatch):
    """Without an anchor, wrong completions of groups without a positive have the weight 0."""
    monkeypatch.setattr(update, "SETTLED_BELOW", 3)
    config = CooptimizationConfig.model_validate(LIGHT | LEAST | {"loss": {"anchor": 0.0}})
    learner, wrong = decided(make_learner(learning_rate=1e-3)), LABELLED[:2]
    _, metrics = update_reward_model(some_pairs(), learner, encoder, config, some_pairs, unpaired=wrong)
    assert metrics["pairs/replayed"] == 0


def test_past_pairs_are_drawn_where_a_new_one_pulls_or_there_is_none(make_learner, encoder, monkeypatch):
    monkeypatch.setattr(update, "SETTLED_BELOW", 0.01)
    config = CooptimizationConfig.model_validate(LIGHT | LEAST)
    for new in (some_pairs(), []):
        _, metrics = update_reward_model(new, decided(make_learner(learning_rate=1e-3)), encoder, config, some_pairs)
        assert metrics["pairs/replayed"] == len(some_pairs())


@pytest.fixture(autouse=True)
def all_pairs_are_scored_after_and_none_is_settled(monkeypatch):
    monkeypatch.setattr(update, "PAIRS_SCORED_AFTER", 99)
    monkeypatch.setattr(update, "SETTLED_BELOW", 0.0)


def updated(make_learner, encoder, share: float):
    """The weights, the pairs and the metrics after an update on pairs, ties and labelled rows."""
    learner = decided(make_learner(learning_rate=1e-3))
    pairs = some_pairs()
    ties = [replace(pair, label="tie", negative_origin="two_right") for pair in pairs[:4]]
    config = CooptimizationConfig.model_validate(LIGHT | {"skip_gradient_share": share})
    scored, metrics = update_reward_model(pairs[4:] + ties, learner, encoder, config, tuple, lambda: LABELLED)
    return learner, scored, metrics


def test_a_share_too_small_for_any_row_changes_no_bit_of_the_update(make_learner, encoder):
    whole, scored, _ = updated(make_learner, encoder, 0.0)
    same, scored_too, metrics = updated(make_learner, encoder, 1e-300)
    assert metrics["reward_model/skipped"] == 0
    assert scored == scored_too
    for one, other in zip(whole.model.parameters(), same.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_losses_reported_are_those_of_all_rows(make_learner, encoder):
    _, _, whole = updated(make_learner, encoder, 0.0)
    _, _, metrics = updated(make_learner, encoder, 0.2)
    skipped = {name: value for name, value in metrics.items() if name.endswith("skipped")}
    assert skipped.keys() == {f"reward_model/{part}skipped" for part in ("", "tie_", "labelled_")}
    assert skipped["reward_model/skipped"] > 5
    for name in ("loss", "pair_accuracy", "margin", "tie_loss", "tie_gap", "labelled_loss", "labelled_accuracy"):
        assert metrics[f"reward_model/{name}"] == pytest.approx(whole[f"reward_model/{name}"], rel=1e-4)


def test_every_epoch_chooses_by_the_logits_of_its_own_weights(make_learner, encoder):
    """Two epochs are two updates. With the first one's logits, the second would skip other rows."""
    config = CooptimizationConfig.model_validate({**LIGHT, "skip_gradient_share": 0.3})
    learner = decided(make_learner(learning_rate=1e-3))
    for _ in range(2):
        scored, _ = update_reward_model(some_pairs(), learner, encoder, config)
    other = decided(make_learner(learning_rate=1e-3))
    both, _ = update_reward_model(some_pairs(), other, encoder, config.model_copy(update={"epochs": 2}))
    after = [(pair.positive_logit_after, pair.negative_logit_after) for pair in both]
    assert after == [(pair.positive_logit_after, pair.negative_logit_after) for pair in scored]


@pytest.mark.parametrize(("limit", "scored_after"), [(1, [10]), (5, [0, 6, 12, 19, 22]), (99, list(range(24)))])
def test_scoring_fewer_pairs_after_the_update_changes_nothing_else(
    make_learner, encoder, limit, scored_after, monkeypatch
):
    whole, pairs, metrics = updated(make_learner, encoder, 0.1)
    monkeypatch.setattr(update, "PAIRS_SCORED_AFTER", limit)
    learner, some, fewer = updated(make_learner, encoder, 0.1)
    for one, other in zip(whole.model.parameters(), learner.model.parameters(), strict=True):
        assert torch.equal(one, other)
    without = {"positive_logit_after": None, "negative_logit_after": None}
    for i, (pair, expected) in enumerate(zip(some, pairs, strict=True)):
        if i not in scored_after:
            assert pair == replace(expected, **without)
        else:
            assert replace(pair, **without) == replace(expected, **without)
            after = (expected.positive_logit_after, expected.negative_logit_after)
            assert (pair.positive_logit_after, pair.negative_logit_after) == pytest.approx(after, abs=1e-5)
    ranked = [some[i] for i in scored_after if some[i].label == "better"]
    right = [pair.positive_logit_after > pair.negative_logit_after for pair in ranked]
    assert fewer["reward_model/pair_accuracy_after"] == sum(right) / len(right)
    names = {name for name in metrics if "accuracy_after" in name}
    assert {name: fewer[name] for name in metrics.keys() - names} == {
        name: metrics[name] for name in metrics.keys() - names
    }


def test_pairs_scored_after_are_spread_over_every_origin_to_its_last_pair():
    origins = ["assistant"] * 6 + ["on_policy"] * 12 + ["swapped_reference"] * 2
    assert spread_over_origins(origins, 5) == [0, 5, 6, 17, 19]
    assert spread_over_origins(origins, 10) == [0, 2, 5, 6, 8, 10, 12, 14, 17, 19]
    assert spread_over_origins(origins, 99) == list(range(20))
