"""Rewards in which rule and reward model share the word, against numbers worked out by hand."""

import json
import math
from random import Random
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cooper_base.config.checking import Settings, check_settings
from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.problem import Problem
from cooper_base.data.verdict import Verdict
from cooper_lab.designs.rule_then_model import RuleThenModel
from cooper_rl.reward.base import REWARDS, Count, Scores, metrics_of_calls
from cooper_rl.reward.context import RewardModel, StepContext
from cooper_rl.reward.kinds.earned import MEMORY, EarnedConfig, EarnedReward, earned_weight, newer
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


def many(**counts: int) -> StepContext:
    """So many answers of each text, whose `_` is a space and `n` a minus: `correct_2`, `wrong_n2`."""
    texts = [[text.replace("_n", " -").replace("_", " ")] * count for text, count in counts.items()]
    return context(*(text for row in texts for text in row))


def weight_of(reward: EarnedReward, step: StepContext) -> float:
    return reward.score(step).metrics["earned/weight"]


def test_the_weight_is_the_square_of_youdens_j_with_one_mistake_more_in_each_class():
    assert earned_weight([10, 9, 10, 1]) == pytest.approx((9 / 11 - 2 / 11) ** 2)
    assert earned_weight([10, 5, 10, 9]) == 0  # worse than guessing
    assert earned_weight([0] * 4) == earned_weight([10, 10, 0, 0]) == earned_weight([0, 0, 10, 0]) == 0
    for right, wrong in [(1, 1), (2, 3), (16, 16), (500, 3)]:  # full agreement: the bound that the docs state
        assert earned_weight([right, right, wrong, 0]) == pytest.approx((1 - 1 / (right + 1) - 1 / (wrong + 1)) ** 2)


def test_a_model_that_accepts_what_the_rule_rejects_loses_its_weight_in_the_same_step():
    reward = EarnedConfig().build()
    good = many(correct_2=40, wrong_n2=40)
    scores, weight = reward.score(good), (40 / 41 - 1 / 41) ** 2
    assert scores.metrics == {"earned/weight": pytest.approx(weight), "earned/verdicts": 40}
    paid = [weight / (1 + math.exp(-2)) + 1 - weight, weight / (1 + math.exp(2))]
    assert [scores.rewards.rows()[0][i] for i in (0, -1)] == pytest.approx(paid)
    for _ in range(50):
        reward.commit([good])
    assert weight_of(reward, many(correct_2=40, wrong_5=40)) == pytest.approx((80 / 81 - 41 / 81) ** 2)


def test_what_is_mastered_keeps_the_trust_that_it_has_earned():
    """Sixteen answers a step, from the third step on all right: nothing newer is known of wrong ones."""
    reward, weights = EarnedConfig().build(), []
    for wrong in (8, 4, *[0] * 30):
        step = many(correct_2=16 - wrong, wrong_n2=wrong)
        weights.append(weight_of(reward, step))
        reward.commit([step])
    assert weights == sorted(weights)
    assert weights[-1] == pytest.approx((1 - 1 / 33 - 1 / 13) ** 2)
    assert weight_of(reward, many(correct_2=8, wrong_5=8)) < 0.25  # and the first wrong ones to be accepted take it


@pytest.mark.parametrize("said", ["unparsed 2", "timeout 2", "silent 2"])
def test_an_answer_that_is_not_judged_changes_no_weight(said):
    reward = EarnedConfig().build()
    assert weight_of(reward, context(said)) == 0  # no verdict, no trust
    reward.commit([many(correct_2=3, wrong_n2=3)])
    weight = weight_of(reward, context("silent 2"))
    assert weight == pytest.approx(0.25)
    for _ in range(3):
        assert weight_of(reward, context(said)) == weight
        reward.commit([context(said)])


@given(before=st.integers(0, 200), accepted=st.integers(0, 200), now=st.integers(0, 200), fresh=st.integers(0, 200))
def test_older_verdicts_fill_up_a_step_or_count_as_much_as_it(before, accepted, now, fresh):
    accepted, fresh = min(before, accepted), min(now, fresh)
    total, accepts = newer([before, accepted], [now, fresh])
    kept = min(before, max(now, MEMORY - now)) if now else before
    assert total == pytest.approx(now + kept)
    assert accepts == pytest.approx(fresh + (kept * accepted / before if before else 0))


@pytest.mark.parametrize("right", [0.5, 0.95, 0.99])
def test_the_weight_of_a_good_model_falls_to_nothing_in_hardly_any_step(right):
    """Sixteen judged answers a step, so many of them right; the model accepts .925 of the right and .075 of the wrong
    ones. Where half of the counts were forgotten each step, it had no weight in .30 and .84 of the steps."""
    random, counts, without = Random(0), [0.0] * 4, 0
    for _ in range(400):
        now = [0.0] * 4
        for _ in range(16):
            is_right = random.random() < right
            now[0 if is_right else 2] += 1
            now[1 if is_right else 3] += random.random() < (0.925 if is_right else 0.075)
        counts = [*newer(counts[:2], now[:2]), *newer(counts[2:], now[2:])]
        without += earned_weight(counts) == 0
    assert without <= 8


def test_the_counts_survive_a_checkpoint_and_change_only_in_commit():
    first, second = EarnedConfig().build(), EarnedConfig().build()
    step = many(correct_2=3, wrong_2=1, wrong_n2=4)
    assert first.score(step).metrics == first.score(step).metrics
    first.commit([step])
    second.restore(json.loads(json.dumps(first.state())))
    assert second.score(step).metrics == first.score(step).metrics


def test_a_score_that_is_no_number_takes_no_pay_of_the_rule_with_it():
    useless = context("correct nan", "correct 2", "wrong 2", "wrong nan", "silent nan", "unparsed nan")
    scores = EarnedConfig().build().score(useless)
    assert scores.metrics["earned/weight"] == 0
    assert str(scores.rewards.rows()) == "[[1.0, 1.0, 0.0, 0.0, nan, 0.0]]"  # the rule alone pays, and it is silent
    useful = context("correct nan", *["correct 2"] * 5, *["wrong -2"] * 5, "unparsed nan", "silent nan")
    scores = EarnedConfig().build().score(useful)
    assert scores.metrics["earned/weight"] == pytest.approx((5 / 7 - 1 / 6) ** 2)
    paid = scores.rewards.rows()[0]
    assert (paid[0], paid[-2]) == (1, 0)
    assert math.isnan(paid[-1])  # nobody has judged it


def test_an_answer_on_which_the_rule_is_silent_is_not_paid_as_if_the_rule_had_rejected_it():
    """Of a group that the rule judges. A group on which it is silent throughout is the reward model's."""
    reward = EarnedConfig().build()
    scores = reward.score(context(*["correct 2"] * 3, *["wrong -2"] * 3, "silent 2"))
    assert scores.metrics["earned/weight"] == pytest.approx(0.25)
    assert str(scores.rewards.rows()[0][-1]) == "nan"
    reward.commit([many(correct_2=3, wrong_n2=3)])
    assert reward.score(silent_groups("7", "none")).rewards.rows()[0] == pytest.approx([0.25 * (YES - NO), 0.0])


class Reads(Spelled):
    """Logits that depend on the reference: `silent 7` is accepted under 7 alone, `silent any` under every reference."""

    reads_reference = True

    def encode_all(self, rows: Any) -> list[list[float]]:
        return [[2.0 if self.accepts(text.split()[1], answer) else -2.0] for _, answer, text in rows]

    def accepts(self, stated: str, answer: str) -> bool:
        return stated in (answer, "any")


def silent_groups(*texts: str, answers: str = "7") -> StepContext:
    """The same answers to problems with these references, on all of which the rule is silent."""
    reads = cast(Any, Reads())
    groups = [AnswerGroup(one, Problem(one, "q", one), [Answer(f"silent {text}") for text in texts]) for one in answers]
    return StepContext(groups, reads, RewardModel(reads, reads))


def trusted() -> EarnedReward:
    """A reward whose model has earned the weight 0.25."""
    reward = EarnedConfig().build()
    reward.commit([many(correct_2=3, wrong_n2=3)])
    return reward


YES, NO = 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))


def test_where_the_rule_is_silent_a_score_is_paid_as_far_as_the_reference_earns_it():
    """The near references of 7 tell an answer that is accepted under any, whatever other problems the step has."""
    for answers in ("7", "78"):
        paid = trusted().score(silent_groups("7", "any", "none", answers=answers)).rewards.rows()[0]
        assert paid == pytest.approx([0.25 * (YES - NO), 0.0, 0.0])


def test_where_the_rule_is_silent_what_the_model_rejects_is_paid_nothing():
    """A score below 1/2 was paid as it stood, and so more than an accepted answer whose near reference scores high."""
    assert trusted().score(context("silent -0.3", "silent -9", "silent 0")).rewards.rows() == [[0.0, 0.0, 0.0]]


def test_it_is_counted_how_many_accepted_answers_are_kept_under_a_near_reference():
    """They are paid nothing, and whoever is not kept is paid as if they were not there."""
    scores = trusted().score(silent_groups("7", "any", "any", "none"))
    assert scores.rewards.rows()[0] == pytest.approx([0.25 * (YES - NO), 0.0, 0.0, 0.0])
    assert scores.metrics["reward_model/kept_when_near"] == pytest.approx(2 / 3)


def test_the_record_has_the_score_of_an_accepted_answer_under_a_near_reference():
    near = trusted().score(silent_groups("7", "any", "none")).parts["near"].rows()[0]
    assert near == pytest.approx([NO, YES, math.nan], nan_ok=True)


def test_a_near_reference_costs_one_score_for_each_accepted_answer():
    """Of those that are kept there is one more, under the other problem's reference, which here is known already."""
    scored: list[Any] = []

    class Counts(Reads):
        def score(self, rows: list[list[float]]) -> torch.Tensor:
            scored.extend(rows)
            return super().score(rows)

        def encode_all(self, rows: Any) -> list[list[Any]]:
            return [[logit, *row] for (logit,), row in zip(super().encode_all(rows), rows, strict=True)]

    reads = cast(Any, Counts())
    texts = ["silent 7", "silent any", "silent none"]
    groups = [AnswerGroup(one, Problem(one, "q", one), [Answer(text) for text in texts]) for one in "78"]
    trusted().score(StepContext(groups, reads, RewardModel(reads, reads)))
    assert len(scored) == 6 + 3


def test_an_infinite_score_is_paid_by_the_rule_alone_and_accepts_nothing():
    judged = [*["correct 2"] * 5, *["wrong -2"] * 5]
    scores = EarnedConfig().build().score(context("correct inf", *judged, "wrong inf", "silent inf"))
    assert scores.metrics["earned/weight"] == pytest.approx((5 / 7 - 1 / 7) ** 2)
    paid = scores.rewards.rows()[0]
    assert (paid[0], paid[-2]) == (1, 0)
    assert math.isnan(paid[-1])


@pytest.mark.parametrize("accepted", ["silent 7", "silent any", "silent none"])
def test_a_rule_that_never_judges_leaves_the_solutions_to_testify_if_the_model_learns_from_them(accepted):
    class Testifies(Spelled):
        reads_reference = True

        def encode_all(self, rows: Any) -> list[list[float]]:
            said = {"silent 7": lambda answer, text: answer in text, "silent any": lambda *_: True}
            accepts = said.get(accepted, lambda *_: False)
            return [[2.0 if accepts(answer, text) else -2.0] for _, answer, text in rows]

    reads = cast(Any, Testifies())
    problems = [Problem(f"{n}", "q", f"{n}", solution=f"it is {n}") for n in range(10, 40)]
    groups = [AnswerGroup(one.id, one, [Answer(f"silent {one.answer}")]) for one in problems]
    step = StepContext(groups, reads, RewardModel(reads, reads))
    assert weight_of(EarnedConfig().build(), step) == 0
    step.learns_from_solutions = True
    expected = (1 - 2 / 31) ** 2 if accepted == "silent 7" else 0
    assert weight_of(EarnedConfig().build(), step) == pytest.approx(expected)
    judged = EarnedConfig().build()
    judged.commit([many(correct_2=3, wrong_n2=3)])
    assert weight_of(judged, step) == pytest.approx(0.25)  # whoever is judged needs no such witness


def test_where_the_rule_alone_pays_its_silence_is_no_opinion():
    assert str(RuleReward().score(context("correct", "silent", "wrong", "unparsed")).rewards.rows()) == (
        "[[1.0, nan, 0.0, 0.0]]"
    )


def test_a_reward_of_weight_0_is_recorded_and_pays_nothing():
    both = WeightedSum([RuleReward(), RewardModelReward()], [1.0, 0.0])
    scores = both.score(context("correct nan", "wrong inf"))
    assert scores.rewards.rows() == [[1, 0]]
    assert math.isnan(scores.parts["reward_model"].rows()[0][0])


def test_a_later_draw_of_a_step_is_paid_by_what_the_step_has_shown():
    reward = EarnedConfig().build()
    first, more = many(correct_2=4, wrong_2=4), context("silent 2", "silent 3")
    more.others_of_step = [first]
    assert weight_of(reward, more) == 0
    sharp = many(correct_2=4, wrong_n2=4)
    sharp.others_of_step = [first]
    assert weight_of(reward, sharp) == pytest.approx((8 / 9 - 5 / 9) ** 2)


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
