"""Reward model, hybrid, user functions, sums and gold, against numbers worked out by hand."""

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
import torch
from pydantic import ValidationError

from cooper_base.data.answer import AnswerGroup
from cooper_base.data.verdict import Verdict
from cooper_base.errors import InputError
from cooper_lab.designs.hybrid import HybridConfig, HybridReward, difficulty_weights, stratified
from cooper_rl.records import Ragged
from cooper_rl.reward.base import Scores
from cooper_rl.reward.context import RewardModel, StepContext, gold_labels
from cooper_rl.reward.kinds.function import FunctionReward
from cooper_rl.reward.kinds.plain import RewardModelReward, WeightedSum
from cooper_rl.reward.scored import step_health
from cooper_verify.rules.kinds.maths import RuleVerifier
from cooper_verify.rules.rule import ProblemAndText, Rule

MakeGroup = Callable[..., AnswerGroup]


class LengthModel:
    """A reward model whose logit is the number of tokens, minus 10."""

    def score(self, token_ids: list[list[int]]) -> torch.Tensor:
        return torch.tensor([float(len(row)) for row in token_ids]) - 10


class Words:
    """An input format with one token per word of the completion."""

    def encode_all(self, rows: Sequence[tuple[str, str, str]]) -> list[list[int]]:
        return [[0] * len(completion.split()) for _, _, completion in rows]


class AllWrong(Rule):
    """A rule that accepts nothing."""

    def verify_problems(self, asked: Sequence[ProblemAndText], /) -> list[Verdict]:
        return ["wrong"] * len(asked)


MODEL = RewardModel(cast(Any, LengthModel()), cast(Any, Words()))


def of(groups: list[AnswerGroup], rule: Any = None) -> StepContext:
    return StepContext(groups, rule, MODEL)


@pytest.fixture
def user_module(tmp_path, monkeypatch) -> str:
    (tmp_path / "my_rewards.py").write_text(
        "def length(problem, completion):\n    return len(completion.text)\n"
        "def constant(problem, completion):\n    return 1\n"
        "def nothing(problem, completion):\n    return None\n"
        "def infinite(problem, completion):\n    return float('inf')\n"
        "def one_argument(problem):\n    return 1.0\n"
        "def ends_right(problem, text):\n    return text.endswith(problem.answer)\n"
        "def perhaps(problem, text):\n    return 0.5\n"
        "number = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return "my_rewards"


def test_scores_are_stretched_inside_right_and_wrong_completions():
    scores = torch.tensor([[0.2, 0.4, 0.8, 0.9, 0.5]], dtype=torch.float64)
    correct = torch.tensor([[True, True, True, False, False]])
    rewards = stratified(scores, correct, HybridConfig(alpha=0.1, beta=0.2, eps=1e-12))
    expected = [0.8, 0.8 + 0.4 / 3, 1.2, 0.1, -0.1]
    assert rewards[0].tolist() == pytest.approx(expected)


def test_groups_all_right_or_all_wrong_or_alike_stay_finite_and_in_their_band():
    scores = torch.tensor([[0.2, 0.6], [0.2, 0.6], [0.5, 0.5], [0.3, 0.9]])
    correct = torch.tensor([[True, True], [False, False], [False, False], [True, False]])
    rewards = stratified(scores, correct, HybridConfig(alpha=0.1, beta=0.1))
    expected = torch.tensor([[0.9, 1.1], [-0.1, 0.1], [-0.1, -0.1], [0.9, -0.1]])
    torch.testing.assert_close(rewards, expected, atol=1e-5, rtol=0)


def test_groups_with_a_larger_spread_of_scores_weigh_more():
    weights = difficulty_weights(torch.tensor([0.3, 0.2, 0.1]), 0.2, HybridConfig(w_min=0.4, w_max=3.0, k=6.0))
    step = 1 / (1 + math.exp(-0.6))
    assert weights.tolist() == pytest.approx([0.4 + 2.6 * step, 1.7, 0.4 + 2.6 * (1 - step)])


def test_bands_that_overlap_are_refused():
    with pytest.raises(ValidationError, match="alpha \\+ beta"):
        HybridConfig(alpha=0.6, beta=0.6)


def test_the_reward_is_the_reward_models_probability(make_group: MakeGroup):
    groups = [make_group("2", "w " * 10, "w " * 12), make_group("3", "w " * 8, "w " * 10)]
    scores = RewardModelReward().score(of(groups))
    high, low = 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))
    torch.testing.assert_close(scores.rewards.flat.reshape(2, -1), torch.tensor([[0.5, high], [low, 0.5]]))
    assert scores.parts["logit"].rows() == [[0, 2], [-2, 0]]
    metrics = step_health(of(groups, AllWrong()), scores)
    assert metrics["reward_model/mean"] == pytest.approx(0.5)
    assert metrics["reward_model/std"] == pytest.approx((high - 0.5) / math.sqrt(2))


def test_the_hybrid_reward_weighs_stratified_scores_by_spread(make_group: MakeGroup):
    groups = [make_group("2", "w " * 9 + "answer: 2", "answer: 3"), make_group("3", "answer: 3", "answer: 3")]
    config = HybridConfig(alpha=0.1, beta=0.1, w_min=1, w_max=3, k=10)
    with RuleVerifier() as verifier:
        scores = HybridReward(config).score(of(groups, verifier))
    sigma = (1 / (1 + math.exp(-1)) - 1 / (1 + math.exp(8))) / 2
    split, alike = (1 + 2 / (1 + math.exp(-side * 10 * sigma / 2)) for side in (1, -1))
    expected = [[0.9 * split, -0.1 * split], [0.9 * alike, 0.9 * alike]]
    torch.testing.assert_close(scores.rewards.flat.reshape(2, -1), torch.tensor(expected), atol=1e-4, rtol=0)
    assert set(scores.parts) == {"rule", "reward_model", "logit", "hybrid"}
    assert scores.metrics["hybrid/sigma_mean"] == pytest.approx(sigma / 2, abs=1e-4)


def test_user_functions_are_weighted_and_recorded_by_name(user_module, make_group: MakeGroup):
    groups = [make_group("2", "ab", "abcd")]
    total = WeightedSum([FunctionReward(f"{user_module}:constant"), FunctionReward(f"{user_module}:length")], [1, -1])
    scores = total.score(of(groups))
    assert scores.rewards.rows() == [[1 - 2, 1 - 4]]
    assert scores.parts["function/length"].rows() == [[2, 4]]
    assert scores.metrics == {"function/constant": 1, "function/length": 3}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("my_rewards", "package.module:function"),
        ("my_rewards:missing", "does not exist"),
        ("my_rewards:number", "not callable"),
        ("my_rewards:one_argument", "problem, completion"),
        ("no_such_module:f", "PYTHONPATH"),
    ],
)
def test_a_function_that_cannot_be_used_is_named(user_module, path, message):
    with pytest.raises(InputError, match=message):
        FunctionReward(path)


def test_an_error_about_an_infinite_reward_names_the_problem(user_module, make_group: MakeGroup):
    with pytest.raises(InputError, match="problem p7"):
        FunctionReward(f"{user_module}:infinite").score(of([make_group("2", "a", id="p7")]))


def test_a_function_that_returns_nothing_has_no_opinion(user_module, make_group: MakeGroup):
    scores = FunctionReward(f"{user_module}:nothing").score(of([make_group("2", "a", "b", id="p7")]))
    assert str(scores.rewards.rows()) == "[[nan, nan]]"
    assert scores.metrics == {}  # a mean of nothing is no metric


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        # an answer on which one of the rewards has no opinion has none: it is not compared as if that reward were 0
        ([[1, None, 0]], [[0.5, 0.5, 0.25]], [[1.5, None, 0.25]]),
        # a reward for problems of another kind is left out of the sums of whole groups
        ([[1, 0], [None, None]], [[None, None], [3, 4]], [[1, 0], [3, 4]]),
        ([[None, None]], [[None, 2]], [[None, 2]]),
        ([[None]], [[None]], [[None]]),
    ],
)
def test_a_sum_adds_opinions_and_never_counts_a_missing_one_as_0(make_group: MakeGroup, first, second, total):
    def nan(rows):
        return Ragged.of([[math.nan if value is None else float(value) for value in row] for row in rows])

    class Fixed:
        def __init__(self, rows):
            self.rows = rows

        def score(self, context):
            return Scores(nan(self.rows))

    groups = [make_group("2", *["a"] * len(row), id=f"p{p}") for p, row in enumerate(first)]
    found = WeightedSum([Fixed(first), Fixed(second)]).score(of(groups)).rewards
    assert str(found.rows()) == str(nan(total).rows())
    ignored = WeightedSum([Fixed(first), Fixed(second)], [0.0, 1.0]).score(of(groups)).rewards
    assert str(ignored.rows()) == str(nan(second).rows())


def test_gold_labels_come_from_the_named_function(user_module, make_group: MakeGroup):
    groups = [make_group("2", "so 2", "so 3"), make_group("3", "so 2", "so 3")]
    assert gold_labels(groups, f"{user_module}:ends_right").rows() == [[True, False], [False, True]]
    with pytest.raises(InputError, match="problem p1"):
        gold_labels(groups, f"{user_module}:perhaps")
