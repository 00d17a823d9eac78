"""Swapped references and ties: every pair is what it says by the rule, and choices depend on nothing but the step."""

import math
from dataclasses import replace
from random import Random

import pytest
from cooptimization_cases import answer_text, flip, make_group  # pyright: ignore[reportMissingImports]

from cooper_lab.designs.chosen_pairs import pair_weights
from cooper_rl.data.problem import Problem
from cooper_rl.recipes import RECIPES
from cooper_rl.rollouts import Answer, AnswerGroup
from cooper_rl.stage2.assistant import CorrupterAssistant
from cooper_rl.stage2.config import CooptimizationConfig
from cooper_rl.stage2.pairs import Pair, nearby
from cooper_rl.stage2.stage2 import Cooptimizer

LIGHT = RECIPES["cooper_light"]["cooptimization"]


def cooptimizer(verifier, **settings) -> Cooptimizer:
    config = CooptimizationConfig.model_validate(LIGHT | settings)
    return Cooptimizer(config, verifier, CorrupterAssistant(flip, verifier))


def make_pairs(stage2: Cooptimizer, verifier, groups, calls: int = 1) -> list[Pair]:
    parts = []
    for start in range(calls):
        some = groups[start::calls]
        logits = [[0.5] * len(group.answers) for group in some]
        parts.append(stage2.start(some, verifier.verify_groups(some), logits, 1))
    return stage2.finish(parts)


def groups(count: int = 5):
    """Each problem has two right completions and two wrong ones."""
    return [
        make_group(
            [answer_text(n), answer_text(n, "Counting."), answer_text(n + 5), answer_text(n + 6)], str(n), id=str(n)
        )
        for n in range(20, 20 + count)
    ]


def test_a_swapped_reference_is_one_that_the_rule_rejects_for_the_same_completion(verifier):
    pairs = make_pairs(cooptimizer(verifier, negatives=["swapped_reference"]), verifier, groups())
    assert [pair.positive == pair.negative for pair in pairs] == [True] * 5
    for pair in pairs:
        assert pair.negative_answer is not None
        own, other = (Problem("p", pair.question, answer) for answer in (pair.answer, pair.negative_answer))
        assert verifier.verify_problems([(own, pair.positive), (other, pair.positive)]) == ["correct", "wrong"]
        assert pair.negative_logit_before is None  # the known logit belongs to the true reference


def test_a_reference_of_another_problem_that_means_the_same_is_never_swapped_in(verifier):
    halves = [
        AnswerGroup(str(i), Problem(str(i), f"What is half of 1 ({i})?", answer), [Answer(r"\boxed{0.5}")])
        for i, answer in enumerate(("1/2", "0.5", r"\frac{2}{4}"))
    ]
    assert make_pairs(cooptimizer(verifier, negatives=["swapped_reference"]), verifier, halves) == []
    other = AnswerGroup("x", Problem("x", "What is a third of 1?", "1/3"), [Answer(r"\boxed{1/3}")])
    pairs = make_pairs(cooptimizer(verifier, negatives=["swapped_reference"]), verifier, [*halves, other])
    assert [pair.negative_answer for pair in pairs[:3]] == ["1/3"] * 3


def test_only_a_model_that_reads_the_reference_ranks_a_swapped_pair(verifier, make_learner, encoder):
    stage2 = cooptimizer(verifier, negatives=["swapped_reference"], loss={"anchor": 0.5})
    pairs = make_pairs(stage2, verifier, groups(2))
    scored, metrics = stage2.update(pairs, make_learner(), encoder)
    assert all(pair.positive_logit_before != pair.negative_logit_before for pair in scored)
    assert "reward_model/pair_accuracy_after_swapped_reference" in metrics


def test_ties_are_two_right_completions_or_two_under_a_question_they_do_not_answer(verifier):
    pairs = make_pairs(cooptimizer(verifier, ties=["two_right", "irrelevant_question"]), verifier, groups())
    by_origin = {
        origin: [pair for pair in pairs if (pair.label, pair.negative_origin) == ("tie", origin)]
        for origin in ("two_right", "irrelevant_question")
    }
    assert [len(found) for found in by_origin.values()] == [5, 5]
    for origin, wanted in (("two_right", "correct"), ("irrelevant_question", "wrong")):
        for pair in by_origin[origin]:
            problem = Problem("p", pair.question, pair.answer)
            verdicts = verifier.verify_problems([(problem, pair.positive), (problem, pair.negative)])
            assert verdicts == [wanted] * 2
            assert pair.positive != pair.negative


def test_ties_leave_the_other_pairs_as_they_were(verifier):
    plain = make_pairs(cooptimizer(verifier), verifier, groups())
    both = make_pairs(cooptimizer(verifier, ties=["two_right", "irrelevant_question"]), verifier, groups())
    assert both[: len(plain)] == plain


def test_partners_do_not_depend_on_the_order_or_the_calls_of_a_step(verifier):
    settings = {"negatives": ["swapped_reference"], "ties": ["two_right", "irrelevant_question"]}
    expected = make_pairs(cooptimizer(verifier, **settings), verifier, groups())
    assert make_pairs(cooptimizer(verifier, **settings), verifier, groups()[::-1]) == expected
    assert make_pairs(cooptimizer(verifier, **settings), verifier, groups(), calls=2) == expected


def test_ties_pull_two_logits_together(verifier, make_learner, encoder):
    stage2, learner = cooptimizer(verifier, negatives=["on_policy"], loss={"anchor": 0}, tie_weight=4), make_learner()
    pairs = [replace(pair, label="tie") for pair in make_pairs(stage2, verifier, groups(2))]
    history = [stage2.update(pairs, learner, encoder)[1] for _ in range(8)]
    assert history[-1]["reward_model/tie_gap"] < 0.5 * history[0]["reward_model/tie_gap"]
    assert history[-1]["reward_model/tie_loss"] == pytest.approx(4 * math.log(2), abs=0.01)
    assert "reward_model/loss" not in history[-1]


def test_nearby_numbers_are_for_whole_numbers_only():
    assert set(nearby("7", Random(0))) <= {"8", "6", "17", "-3", "70", "-7"}
    assert "0" not in nearby("0", Random(0))
    assert [nearby(text, Random(0)) for text in ("x", "1/2", "B", "3.5", "1" * 16, "²")] == [[]] * 6


def test_weights_have_mean_1_and_follow_how_wrong_the_score_was():
    pair = Pair("p", "q", "7", "a", "b", "rollout", "on_policy")
    pairs = [replace(pair, positive_logit_before=p, negative_logit_before=n) for p, n in ((2.0, 0.0), (1.0, 3.0))]
    assert pair_weights(pairs, "equal") == [1.0, 1.0]
    misranked, overpaid = pair_weights(pairs, "misranked"), pair_weights(pairs, "overpaid")
    assert misranked[1] / misranked[0] == pytest.approx((1 + math.exp(2)) / (1 + math.exp(-2)))
    assert overpaid[1] / overpaid[0] == pytest.approx((1 / (1 + math.exp(-3))) / 0.5)
    assert [sum(misranked), sum(overpaid)] == pytest.approx([2, 2])
    surely = [replace(pair, positive_logit_before=2e3, negative_logit_before=-2e3)] * 2
    assert pair_weights(surely, "misranked") == pytest.approx([1, 1])
