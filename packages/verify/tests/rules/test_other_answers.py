"""Two answers count as different only where neither can be the other in other words."""

import pytest

from cooper_verify.rules.other_answers import are_different

SAME = [
    *[("12", "twelve"), ("12", "12.0"), ("1/2", "0.5"), ("1/2", "one half"), ("21", "twenty-one"), ("1e3", "1000")],
    *[("two dozen", "twenty-four"), ("a dozen", "12"), ("12 thousand", "12000"), ("12 million", "twelve million")],
    *[("25,000", "25000"), ("1 1/2", "3/2"), ("minus three", "-3"), ("seven point five", "7.5"), ("50%", "0.5")],
    *[("three quarters", "0.75"), (r"\frac{3}{4}", "0.75"), (r"\sqrt{4}", "2"), (r"2\sqrt{3}", r"\sqrt{12}")],
    *[("5 km", "5000 m"), ("12 apples", "twelve"), ("9 pm", "21:00"), ("5 June 2024", "2024-06-05"), ("½", "0.5")],
    *[("x^2+1", "1+x^2"), ("(1/2, 3)", "(0.5, 3)"), (r"\{1,2\}", r"\{2,1\}")],
    *[("one hundred and five", "105"), ("two and a half", "2.5"), ("forty-two", "42"), ("fifteen hundred", "1500")],
    *[("half a dozen", "6"), ("105,000", "one hundred and five thousand"), ("two five", "25"), ("12 hats", "a dozen")],
    *[("two trillion", "2,000,000,000,000"), ("three lakh", "300000"), ("a crore", "10000000")],
    *[("Curie, Marie", "Marie Curie"), ("Nile", "the river Nile"), ("5", r"\boxed{5}")],
]
DIFFERENT = [
    *[("12", "13"), ("twelve", "thirteen"), ("7.5", "8"), ("3/4", "2/3"), ("-3", "3"), ("25,000", "12")],
    *[(r"\frac{1}{3}", "2"), (r"\frac{1}{3}", r"\frac{1}{4}"), (r"2\pi", r"3\pi"), ("x^2+1", "x^2+2"), ("x=2", "x=3")],
    *[
        ("5 km", "7 km"),
        ("9 pm", "10 pm"),
        ("2024-01-05", "2024-01-06"),
        ("(1,2)", "(3,4)"),
        ("1, 2, 3", "1, 2, 4"),
        ("(1,2)", "(2,1)"),
    ],
    *[("twenty-four", "thirty-four"), ("twenty-eight", "28.5"), ("nineteen", "minus nineteen"), ("one half", "2")],
    *[
        ("two lakh", "three lakh"),
        (r"\{1,2\}", r"\{1,3\}"),
        ("[1, 2]", "[1, 3]"),
        ("Paris", "London"),
        ("A", "B"),
        ("yes", "no"),
    ],
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_an_answer_in_other_words_is_not_another_answer(one, other):
    assert not are_different(one, other)
    assert not are_different(other, one)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_another_answer_is_seen(one, other):
    assert are_different(one, other)
    assert are_different(other, one)
