"""Formulas that are proved different are different to Math-Verify too, and equal ones never are."""

import pytest
import sympy
from math_verify import grader, parse, verify

from cooper_verify.rules.enclosure import are_different
from cooper_verify.rules.equality import by_simplify

EQUAL = [
    (r"\frac{x^2-1}{x-1}", "x+1"),
    (r"\sin^2 x + \cos^2 x", "1"),
    (r"\log_2 8", "3"),
    (r"2^{x+1}", r"2 \cdot 2^x"),
    (r"\sqrt{x^2}", "x"),
    (r"\sqrt{2}\sqrt{3}", r"\sqrt{6}"),
    (r"\sqrt{3+2\sqrt{2}}", r"1+\sqrt{2}"),
    ("0.333333333333333x", r"\frac{x}{3}"),
    ("0.1x+0.2x", "0.3x"),
    (r"25\%", r"\frac{1}{4}"),
    (r"\cot x", r"\frac{1}{\tan x}"),
]
DIFFERENT = [
    ("x+1", "x-1"),
    ("x+y", "x+z"),
    (r"\frac{\pi}{4}", r"\frac{\pi}{3}"),
    (r"\ln 3", r"\log 3"),
    (r"e^{-2x}", r"e^{2x}"),
    (r"|x-2|", "x-2"),
    (r"\sqrt[3]{2}", r"\sqrt{2}"),
]
NOT_READ = [
    (r"\sqrt{-4}", "2"),
    (r"(-8)^{\frac{1}{3}}", "2"),
    (r"\ln(-2)", r"\ln 2"),
    (r"\frac{1}{0}", "1"),
    ("9^{9^{9^9}}", "x"),
    (r"\sum_{n=1}^\infty \frac{1}{n^2}", "1"),
    (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix} 1 \\ 3 \end{pmatrix}"),
    ("5!", "24"),
    ("x = 1", "x = 2"),
    ("10^{12}+x+1", "10^{12}+x+1.001"),
]


def formulas(*texts):
    return [parse(f"${text}$", parsing_timeout=None)[0] for text in texts]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("one", "other"), EQUAL + NOT_READ)
def test_nothing_is_proved_of_equal_formulas_and_of_those_it_cannot_read(one, other):
    assert not are_different(*formulas(one, other))


def test_a_formula_too_deep_for_the_stack_is_not_read():
    deep = gold = sympy.Symbol("x", real=True)
    for _ in range(2000):
        deep = sympy.Add(deep, gold, evaluate=False)
    assert not are_different(gold, deep)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_is_proved_different_is_so_to_math_verify(one, other):
    gold, found = formulas(one, other)
    assert are_different(gold, found)
    assert not by_simplify(gold, found)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_math_verify_simplifies_only_what_is_not_proved_different(one, other, monkeypatch):
    simplified = []
    monkeypatch.setattr(grader, "simplify", simplified.append)
    gold, found = formulas(one, other)
    assert not verify(gold, found, timeout_seconds=None)
    assert simplified == []
