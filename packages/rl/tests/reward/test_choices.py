"""Which completions become positives and on-policy negatives."""

from random import Random

import pytest

from cooper_rl.reward.pairs.base import PairGroup, choose_positives
from cooper_rl.reward.pairs.sources.on_policy import OnPolicyPairs, choose_wrong
from cooptimization_cases import cut_off, make_group  # pyright: ignore[reportMissingImports]


def negatives(group, verdicts, logits, positives=(), count=1, seed=0, **settings):
    config = OnPolicyPairs(**settings)
    return choose_wrong(PairGroup(group, verdicts, logits, positives=list(positives)), count, config, Random(seed))


def positives(group, verdicts, count, seed=0):
    return choose_positives(PairGroup(group, verdicts, [0.0] * len(verdicts)), count, Random(seed))


def test_only_completions_the_rule_accepts_are_positives():
    group = make_group(["a", "b", "c", "d"])
    assert positives(group, ["wrong", "correct", "unparsed", "timeout"], 4) == ["b"]
    assert positives(group, ["wrong"] * 4, 4) == []


def test_a_completion_cut_at_the_length_limit_is_never_a_positive():
    group = make_group([cut_off("a"), "b"])
    assert positives(group, ["correct", "correct"], 2) == ["b"]


def test_every_accepted_completion_can_be_drawn_and_a_seed_decides_which():
    group = make_group(["a", "b", "c", "d "])
    draws = [positives(group, ["correct"] * 4, 1, seed)[0] for seed in range(200)]
    assert {text: draws.count(text) > 20 for text in draws} == dict.fromkeys("abcd", True)
    assert draws == [positives(group, ["correct"] * 4, 1, seed)[0] for seed in range(200)]


def test_equal_texts_are_one_positive():
    group = make_group(["a", "a\n", " a"])
    assert positives(group, ["correct"] * 3, 3) == ["a"]


def test_the_completion_the_reward_model_likes_most_is_the_first_negative():
    group = make_group(["a", "b", "c", "d"])
    verdicts = ["wrong", "correct", "wrong", "wrong"]
    assert negatives(group, verdicts, [-1.0, 9.0, 3.0, 0.5], count=3) == ["c", "d", "a"]
    assert negatives(group, verdicts, [-1.0, 9.0, 3.0, 0.5]) == ["c"]


def test_a_logit_that_is_not_a_number_comes_last():
    group = make_group(["a", "b"])
    assert negatives(group, ["wrong", "wrong"], [float("nan"), -5.0]) == ["b"]


def test_a_finished_completion_comes_before_a_cut_one():
    group = make_group([cut_off("a"), "b"])
    assert negatives(group, ["wrong", "wrong"], [5.0, -5.0], count=2) == ["b", "a"]


def test_an_unparsed_completion_may_be_right_and_is_not_trusted_to_be_wrong():
    group = make_group(["seven", "x"])
    assert negatives(group, ["unparsed", "timeout"], [0.0, 0.0]) == []
    assert negatives(group, ["unparsed", "timeout"], [0.0, 0.0], unread=("unparsed",)) == ["seven"]


def test_a_completion_without_any_content_is_wrong_even_if_unparsed():
    group = make_group([" \n", "..."])
    assert negatives(group, ["unparsed", "unparsed"], [0.0, 1.0], count=2) == ["...", ""]


def test_a_text_is_never_both_positive_and_negative():
    group = make_group(["a ", "a", "b", "c", "c\n"])
    found = negatives(group, ["wrong", "correct", "wrong", "wrong", "wrong"], [3.0, 0.0, 2.0, 1.0, 1.0], ["b"], 5)
    assert found == ["c"]


@pytest.mark.parametrize("order", ["hardest", "random"])
def test_equal_seeds_choose_equal_negatives(order):
    group = make_group(list("abcdefgh"))
    draws = [negatives(group, ["wrong"] * 8, [0.0] * 8, count=3, seed=seed, order=order) for seed in (5, 5, 6)]
    assert draws[0] == draws[1]
    assert (draws[0] == draws[2]) is (order == "hardest")
