"""Accuracy estimates, compared with counting, with known values, and with a sampler of known skill."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from cooper_audit.statistics import Estimate, avg_at_k, maj_at_k, pass_at_k, wilson_interval
from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_rl.engines.base import PolicyLearner, Sampler
from cooper_rl.engines.config import SamplingParams
from cooper_rl.policy.accuracy import HeldOut, difference, evaluate, relabel, summarise
from cooper_rl.records import Column, Samples
from cooper_verify.rules.other_answers import stated_answers
from cooper_verify.rules.rule import Rule
from cooper_verify.rules.verifier import Verifier


def test_avg_at_k_is_the_share_of_right_completions():
    correct = np.array([[True, False, False, False], [True, True, True, False]])
    assert avg_at_k(correct).tolist() == [0.25, 0.75]


@pytest.mark.parametrize("right", range(6))
@pytest.mark.parametrize("k", range(1, 6))
def test_pass_at_k_equals_counting_all_subsets(right: int, k: int):
    row = [True] * right + [False] * (5 - right)
    subsets = list(combinations(row, k))
    expected = sum(any(subset) for subset in subsets) / len(subsets)
    assert pass_at_k(np.array([row]), k) == pytest.approx([expected])


def test_pass_at_1_is_avg_at_k():
    correct = np.random.default_rng(0).random((50, 8)) < 0.3
    assert pass_at_k(correct, 1) == pytest.approx(avg_at_k(correct))


@pytest.mark.parametrize("k", [0, 5])
def test_pass_at_k_needs_at_least_k_completions(k: int):
    with pytest.raises(ValueError, match=f"pass@{k}"):
        pass_at_k(np.zeros((2, 4), dtype=bool), k)


class EvenSampler(Sampler):
    """Answers each prompt with its number. Every odd draw is wrong, and the last draw is cut off."""

    def __init__(self):
        self.calls: list[tuple[int, SamplingParams, int]] = []

    def sample(self, prompts: Sequence[Sequence[int]], n: int, params: SamplingParams, seed: int) -> Samples:
        self.calls.append((len(prompts), params, seed))
        draws = [(ids[0], draw) for ids in prompts for draw in range(n)]
        token_ids = Column.of([[7] * (draw + 1) for _, draw in draws])
        return Samples(
            token_ids=token_ids,
            logprobs=np.zeros(len(token_ids.values), np.float32),
            stopped=np.array([draw < n - 1 for _, draw in draws]),
            texts=[str(number + draw % 2) for number, draw in draws],
        )

    def sync_weights(self, learner: PolicyLearner) -> None:
        raise NotImplementedError


def encode(problem: Problem) -> list[int]:
    return [int(problem.answer)]


PROBLEMS = [Problem(f"p{i}", f"{i}?", str(i)) for i in range(5)]


def equals(problem: Problem, text: str) -> bool:
    return text == problem.answer


def test_an_evaluation_reports_what_the_sampler_did():
    sampler, seen = EvenSampler(), []
    result = evaluate(
        sampler,
        encode,
        PROBLEMS,
        equals,
        k=4,
        batch_size=2,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(2, 5), (4, 5), (5, 5)]
    assert result.avg_at_k == Estimate(0.5, *wilson_interval(0.5, 5 * 4))
    assert {k: round(estimate.mean, 6) for k, estimate in result.pass_at.items()} == {1: 0.5, 2: 0.833333, 4: 1.0}
    assert (result.mean_tokens, result.truncated) == (2.5, 0.25)
    assert [(r.problem_id, r.completion, r.correct) for r in result.records[4:8]] == [
        ("p1", "1", True),
        ("p1", "2", False),
        ("p1", "1", True),
        ("p1", "2", False),
    ]


def test_the_papers_protocol_is_the_default():
    sampler = EvenSampler()
    assert evaluate(sampler, encode, PROBLEMS, equals).k == 8
    assert (sampler.calls[0][1].temperature, sampler.calls[0][1].top_p) == (0.7, 0.95)


def test_batches_get_different_seeds_and_the_same_ones_again():
    first, again = EvenSampler(), EvenSampler()
    for sampler in (first, again):
        evaluate(sampler, encode, PROBLEMS, equals, k=1, seed=3, batch_size=1)
    seeds = [seed for _, _, seed in first.calls]
    assert len(set(seeds)) == len(PROBLEMS)
    assert seeds == [seed for _, _, seed in again.calls]


def test_the_same_completions_can_be_labelled_again():
    by_rule = evaluate(EvenSampler(), encode, PROBLEMS, equals, k=2)
    by_gold = relabel(by_rule, PROBLEMS, lambda problem, text: True)
    assert (by_rule.avg_at_k.mean, by_gold.avg_at_k.mean) == (0.5, 1.0)
    assert [r.completion for r in by_gold.records] == [r.completion for r in by_rule.records]


def heard_up_to_2(problem: Problem, text: str) -> bool | None:
    """A rule that is silent on the problems from 3 on."""
    return None if int(problem.answer) > 2 else text == problem.answer and problem.id != "p0"


def test_what_the_rule_is_silent_on_counts_in_no_accuracy():
    some = evaluate(EvenSampler(), encode, PROBLEMS, heard_up_to_2, k=4)
    alone = evaluate(EvenSampler(), encode, PROBLEMS[:3], heard_up_to_2, k=4)
    assert (some.problems, some.judged, alone.problems, alone.judged) == (5, 3, 3, 3)
    assert (some.avg_at_k, some.maj_at_k, some.pass_at) == (alone.avg_at_k, alone.maj_at_k, alone.pass_at)
    assert some.avg_at_k.mean == pytest.approx(1 / 3)
    assert [one.correct for one in some.records[-4:]] == [None] * 4
    assert difference(some, some) == difference(alone, alone)


def test_of_a_problem_its_judged_completions_count():
    """As in an environment, where each run may end without a reward."""
    result = evaluate(EvenSampler(), encode, PROBLEMS[:2], lambda problem, text: text == problem.answer, k=4)
    said = [True, None, False, None, None, None, None, True]
    found = summarise([replace(one, correct=yes) for one, yes in zip(result.records, said, strict=True)], 4)
    assert (found.judged, found.avg_at_k.mean) == (2, 0.75)
    assert (found.pass_at[1].mean, found.pass_at[2].mean) == (0.75, 1.0)
    assert math.isnan(found.pass_at[4].mean)


def test_a_rule_that_is_silent_on_all_problems_has_no_accuracy():
    result = evaluate(EvenSampler(), encode, PROBLEMS, lambda problem, text: None, k=2)
    assert (result.judged, result.truncated) == (0, 0.5)
    assert math.isnan(result.avg_at_k.mean)
    assert math.isnan(difference(result, result).mean)
    assert relabel(result, PROBLEMS, equals).avg_at_k.mean == 0.5


@pytest.mark.parametrize("silent", ["none", "some", "all"])
def test_a_run_measures_the_rule_where_it_judges_and_gold_in_both_parts(silent):
    class Some(Rule):
        def verify_problems(self, asked, /):
            heard = {"none": 5, "some": 3, "all": 0}[silent]
            return [
                "silent" if int(one.answer) >= heard else "correct" if equals(one, text) else "wrong"
                for one, text in asked
            ]

    class Settings:
        def build(self):
            return Some()

    encoder = SimpleNamespace(encode=encode)
    held_out = HeldOut(PROBLEMS, encoder, SamplingParams(), 2, 8, lambda problem, text: problem.id == "p0")  # pyright: ignore[reportArgumentType]
    with Verifier(Settings()) as verifier:
        metrics = held_out.metrics(held_out.evaluate(EvenSampler(), verifier, 0))
    parts = {"none": {}, "some": {"heard": 0.6, "gold_avg_heard": 1 / 3, "gold_avg_silent": 0.0}}
    parts["all"] = {"heard": 0.0, "gold_avg_silent": 0.2}
    rule = {} if silent == "all" else {"rule_avg": 0.5}
    expected = {"gold_avg": 0.2, "cut_off_rate": 0.5} | parts[silent] | rule
    assert metrics == pytest.approx({f"test/{name}": value for name, value in expected.items()})


def test_no_problems_is_an_input_error():
    with pytest.raises(InputError, match="no problems"):
        evaluate(EvenSampler(), encode, [], equals)


def test_the_most_frequent_answer_is_right_or_a_tie_is_shared():
    answers = [["4", "4", "5", None], ["4", "5", None, None], [None] * 4, ["5", "5", "5", "4"]]
    correct = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]], dtype=bool)
    assert maj_at_k(answers, correct).tolist() == [1.0, 0.5, 0.0, 0.0]


def test_votes_are_for_answers_and_not_for_texts():
    same = {*stated_answers([r"So \boxed{12}.", r"I think \boxed{12}", "The answer is 12."])}
    assert len(same) == 1
    assert stated_answers([r"\boxed{13}"])[0] not in same
