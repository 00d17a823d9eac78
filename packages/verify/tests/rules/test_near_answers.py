"""Near answers: each is another answer than the one it was made of."""

import random

import pytest
from benchmarks.verdicts.answer_forms import TYPES

from cooper_base.data.problem import Problem
from cooper_verify import RuleVerifier
from cooper_verify.rules.near_answers import near_answers, stated_with_near
from cooper_verify.rules.other_answers import are_different

NEAR = {
    "28,000": [
        *("28,000,000", "28000000", "28", "2,800", "2800", "280,000", "280000", "28,001", "28001", "27,999", "27999"),
        *("228,000", "228000", "82,000", "82000", "-28,000"),
    ],
    "28": ["28,000", "28000", "0.028", "2.8", "280", "29", "27", "2", "228", "82", "-28"],
    "0.4": ["400", "0.0004", "0.04", "4", "0.5", "0.3", "-0.4"],
    "-3/4": ["-30/4", "-4/4", "-2/4", "-3/5", "3/4", "-4/3"],
    r"\frac{3}{4}": [r"\frac{4}{4}", r"\frac{3}{5}", r"-\frac{3}{4}", r"\frac{4}{3}"],
    "12 cm": ["12000 cm", "1.2 cm", "13 cm", "21 cm"],
    "28 thousand": ["28", "29 thousand", "280 thousand"],
    "1{,}000": ["1", "1{,}001", "999", "-1{,}000"],
    "$12": ["$13", "$-12"],
    "x^2-1": ["x^3-1", "x^2-2", "x^2+1", "-x^2-1"],
    r"x \le 3": [r"x \le 4", r"x \ge 3"],
    "[0, 1)": ["(0, 1)", "[0, 1]", "[0, 2)"],
    "(1, 2)": ["(2, 1)", "(1, 3)", "(2, 2)"],
    "1, 2, 3": ["1, 2", "1, 2, 4", "2, 2, 3"],
    "x = 2 or x = 3": ["x = 2", "x = 2 or x = 4"],
    "3:45": ["3:46", "3:54"],
    "twenty-four": ["twenty-five", "twenty-three", "thirty-four"],
    "minus one": ["one", "minus two"],
    "A": ["B"],
    "(C)": ["(B)", "(D)"],
    "Yes": ["No"],
    "true": ["false"],
}


@pytest.mark.parametrize("answer", NEAR)
def test_an_answer_of_each_type_has_its_smallest_changes(answer):
    (found,) = near_answers([answer])
    assert set(NEAR[answer]) <= set(found)
    assert len(found) <= 30


@pytest.mark.parametrize("answer", ["28,000", "28"])
def test_the_near_answers_of_a_number_are_these(answer):
    assert near_answers([answer]) == [NEAR[answer]]


@pytest.mark.parametrize("answer", ["", " ", "Paris", "George Washington", "nineteen figs", "1" * 201, "²"])
def test_an_answer_to_which_nothing_is_different_for_sure_has_none(answer):
    assert near_answers([answer]) == [[]]


@pytest.mark.parametrize("count", [1, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", TYPES)
def test_a_near_answer_is_never_another_form_of_the_answer(kind, count):
    """Of so many values of every type in every form: another answer for sure, and never one that the rule accepts."""
    draw = random.Random(kind)
    values = [TYPES[kind](draw) for _ in range(count)]
    answers = list(dict.fromkeys(form for value in values for form in [*value.forms, *value.prose]))
    pairs = [(answer, near) for answer, found in zip(answers, near_answers(answers), strict=True) for near in found]
    assert all(are_different(answer, near) for answer, near in pairs)
    with RuleVerifier() as verifier:
        verdicts = verifier.verify_problems([(Problem("p", "?", a), rf"\boxed{{{near}}}") for a, near in pairs])
    assert [pair for pair, verdict in zip(pairs, verdicts, strict=True) if verdict == "correct"] == []


def test_a_completion_has_the_answers_near_to_the_one_that_it_states():
    completions = ["17+11=28 answer: 28", r"So it is \boxed{28,000}.", "It is 3 or so", r"\boxed{1} or \boxed{2}", ""]
    assert [row[:2] for row in stated_with_near(completions)] == [
        ["28", "28,000"],
        ["28,000", "28,000,000"],
        [],
        [],
        [],
    ]
    assert stated_with_near(["answer: Paris"]) == [["Paris"]]
