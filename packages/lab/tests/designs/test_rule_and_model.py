"""Rewards in which rule and reward model share the word, against numbers worked out by hand."""

import json
import math
from typing import Any, cast

import pytest
import torch

from cooper_base.config.checking import Settings, check_settings
from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict
from cooper_lab.designs.rule_then_model import RuleThenModel
from cooper_rl.reward.base import REWARDS, Count, Scores, metrics_of_calls
from cooper_rl.reward.context import RewardModel, StepContext
from cooper_rl.reward.kinds.earned import EarnedConfig, earned_weight
from cooper_rl.reward.kinds.plain import RewardModelReward, RuleReward, WeightedSum
from cooper_rl.reward.reward_config import CooperRewardConfig
from cooper_verify.rules.rule import Rule


class Spelled(Rule):
    """A rule and a reward model whose opinions stand in the completion: `wrong 2.5` has verdict wrong and logit 2.5."""

    def verify_problems(self, asked: Any, /) -> list[Verdict]:
        return [text.split()[0] for _, text in asked]

    def encode_all(self, rows: Any) -> list[list[float]]:
        return [[float(completion.split()[1])] for _, _, completion in rows]

    def score(self, rows: list[list[float]]) -> torch.Tensor:
        return torch.tensor([row[0] for row in rows])


def context(*texts: str) -> StepContext:
    spelled = cast(Any, Spelled())
    group = AnswerGroup("p", Problem("p", "q", "7"), [Answer(text) for text in texts])
    return StepContext([group], spelled, RewardModel(spelled, spelled))


def test_the_model_decides_only_what_the_rule_cannot_read():
    step = context("correct -9", "wrong 9", "unparsed 0", "timeout 100")
    scores = RuleThenModel(highest=0.8).score(step)
    assert scores.rewards.rows() == [pytest.approx([1.0, 0.0, 0.4, 0.8])]
    assert scores.metrics == {"rule_then_model/silent": 0.5}


def test_the_weight_is_the_square_of_youdens_j():
    assert earned_weight([10, 9, 10, 1]) == pytest.approx(0.64)
    assert earned_weight([10, 5, 10, 9]) == 0  # worse than guessing
    assert earned_weight([0, 0, 10, 0]) == earned_weight([10, 10, 0, 0]) == 0  # nothing to measure by
    assert earned_weight([0.9, 0.9, 10, 0]) == 0  # what was right is long gone


def test_a_model_that_accepts_what_the_rule_rejects_loses_its_weight_in_the_same_step():
    reward = EarnedConfig().build()
    good = context("correct 2", "correct 2", "wrong -2", "wrong -2")
    scores = reward.score(good)
    assert scores.metrics == {"earned/weight": 1.0}
    assert scores.rewards.rows()[0] == pytest.approx([1 / (1 + math.exp(-2))] * 2 + [1 / (1 + math.exp(2))] * 2)
    reward.commit([good])
    hacked = context("correct 2", "correct 2", "wrong 5", "wrong 5")
    scores = reward.score(hacked)
    assert scores.metrics["earned/weight"] == pytest.approx((1 - 2 / 3) ** 2)  # 1 of 1 + 2 wrong ones is rejected
    assert scores.rewards.rows()[0][2] == pytest.approx((1 - 2 / 3) ** 2 / (1 + math.exp(-5)))


def test_the_counts_survive_a_checkpoint_and_change_only_in_commit():
    first, second = EarnedConfig().build(), EarnedConfig().build()
    step = context("correct 2", "wrong 2", "wrong -2")
    assert first.score(step).metrics == first.score(step).metrics
    first.commit([step])
    second.restore(json.loads(json.dumps(first.state())))
    assert second.score(step).metrics == first.score(step).metrics


def test_a_score_that_is_no_number_takes_no_pay_of_the_rule_with_it():
    useless = context("correct nan", "correct 2", "wrong 2", "wrong nan", "silent nan", "unparsed nan")
    scores = EarnedConfig().build().score(useless)
    assert scores.metrics == {"earned/weight": 0.0}
    assert str(scores.rewards.rows()) == "[[1.0, 1.0, 0.0, 0.0, nan, 0.0]]"  # the rule alone pays, and it is silent
    useful = context("correct nan", "correct 2", "wrong -2", "unparsed nan", "silent nan")
    scores = EarnedConfig().build().score(useful)
    assert scores.metrics == {"earned/weight": 0.25}
    right, _, _, unread, silent = scores.rewards.rows()[0]
    assert (right, unread) == (1, 0)
    assert math.isnan(silent)  # nobody has judged it


def test_an_answer_on_which_the_rule_is_silent_is_not_paid_as_if_the_rule_had_rejected_it():
    """Of a group that the rule judges. A group on which it is silent throughout is the reward model's."""
    reward = EarnedConfig().build()
    scores = reward.score(context("correct 2", "correct 2", "wrong -2", "wrong 2", "silent 2"))
    assert scores.metrics == {"earned/weight": 0.25}  # J is a half
    assert str(scores.rewards.rows()[0][4]) == "nan"
    reward.commit([context("correct 2", "correct 2", "wrong -2", "wrong 2")])
    silent = reward.score(context("silent 2", "silent -2"))
    assert silent.rewards.rows()[0] == pytest.approx([0.25 / (1 + math.exp(-2)), 0.25 / (1 + math.exp(2))])
    trusting = EarnedConfig().build()
    scores = trusting.score(context("correct 2", "wrong -2", "silent 2"))
    assert scores.metrics == {"earned/weight": 1.0}  # the model alone pays
    assert scores.rewards.rows()[0][2] == pytest.approx(1 / (1 + math.exp(-2)))


def test_where_the_rule_alone_pays_its_silence_is_no_opinion():
    assert str(RuleReward().score(context("correct", "silent", "wrong", "unparsed")).rewards.rows()) == (
        "[[1.0, nan, 0.0, 0.0]]"
    )


def test_a_reward_of_weight_0_is_recorded_and_pays_nothing():
    both = WeightedSum([RuleReward(), RewardModelReward()], [1.0, 0.0])
    scores = both.score(context("correct nan", "wrong inf"))
    assert scores.rewards.rows() == [[1, 0]]
    assert math.isnan(scores.parts["reward_model"].rows()[0][0])


@pytest.mark.parametrize("said", [["correct 2", "wrong 2"], ["unparsed 2"], ["timeout 2"]])
def test_a_rule_that_has_spoken_is_not_forgotten(said):
    """The step after holds only answers on which the rule is silent, and no count is remembered."""
    reward, again = EarnedConfig().build(), EarnedConfig().build()
    assert reward.score(context("silent 2")).metrics == {"earned/weight": 1.0}
    reward.commit([context(*said)])
    again.restore(json.loads(json.dumps(reward.state())))
    for one in (reward, again):
        assert one.score(context("silent 2")).metrics == {"earned/weight": 0.0}


def test_a_rule_that_is_silent_throughout_leaves_all_to_the_model():
    reward = EarnedConfig().build()
    for _ in range(3):
        assert reward.score(context("silent 2")).metrics == {"earned/weight": 1.0}
        reward.commit([context("silent 2")])


@pytest.mark.parametrize(("counts", "weight"), [([0.0] * 4, 1.0), ([4.0, 2.0, 4.0, 2.0], 0.0)])
def test_a_checkpoint_of_an_earlier_version_has_the_counts_alone(counts, weight):
    reward = EarnedConfig().build()
    reward.restore(counts)
    assert reward.score(context("silent 2")).metrics == {"earned/weight": weight}


def test_a_later_draw_of_a_step_is_paid_by_what_the_step_has_shown():
    reward = EarnedConfig().build()
    first, more = context("correct 2", "wrong 2"), context("silent 2", "silent 3")
    more.others_of_step = [first]
    assert reward.score(more).metrics == {"earned/weight": 0.0}
    sharp = context("correct 2", "wrong -2")
    sharp.others_of_step = [first]
    assert reward.score(sharp).metrics == {"earned/weight": 0.25}  # both right ones accepted, and one of the wrong


def test_metrics_of_several_calls_are_their_mean_over_answers_and_the_sum_of_counts():
    scores = context("correct 2").correct
    calls = [
        (Scores(scores, metrics={"earned/weight": 1.0, "judge/requests": Count(3), "early": 5.0}), 6),
        (Scores(scores, metrics={"earned/weight": 0.0, "judge/requests": Count(4)}), 2),
    ]
    assert metrics_of_calls(calls) == {"earned/weight": 0.75, "judge/requests": 7, "early": 5.0}


@pytest.mark.parametrize("kind", ["rule_then_model", "earned"])
def test_a_configuration_selects_them_and_their_model_is_loaded(kind):
    settings = {"kind": "static", "rewards": [{"kind": kind}], "reward_model": {"model": "m"}}
    config = check_settings(CooperRewardConfig, Settings(settings, "test", {}))
    assert config.loaded_model is not None
    assert REWARDS.kind_of(config.rewards[0]) == kind
