"""What the rule needs of Math-Verify. The versions in pyproject.toml have it; one that changes it fails here.

It asks Math-Verify for one thing, `grader.sympy_symbolic_eq`, about two sympy expressions.
"""

import inspect

import pytest
import sympy
from math_verify import grader

from cooper_verify.rules.values.formula import formula
from cooper_verify.rules.verdicts.symbolic import same_formulas

X = sympy.Symbol("x", real=True)
EQUAL = [
    ((X + 1) ** 2, X**2 + 2 * X + 1),
    (sympy.sin(X) ** 2 + sympy.cos(X) ** 2, sympy.Integer(1)),
    ((X**2 - 1) / (X + 1), X - 1),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_its_function_sees_that_formulas_are_equal_and_that_they_differ(one: sympy.Expr, other: sympy.Expr):
    assert grader.sympy_symbolic_eq(one, other) is True
    assert grader.sympy_symbolic_eq(one, other + X) is False


def test_its_function_takes_two_expressions_and_nothing_of_it_is_replaced():
    assert list(inspect.signature(grader.sympy_symbolic_eq).parameters) == ["a", "b"]
    assert {function.__module__ for function in (grader.sympy_symbolic_eq, grader.verify)} == {"math_verify.grader"}


def test_case_and_every_symbol_reach_the_expression():
    for one, other, verdict in [
        ("V^2/R", "v^2/r", False),
        ("n(n+1)/2", r"\frac{n^2+n}{2}", True),
        ("2xy", "2x", False),
    ]:
        first, second = formula(one), formula(other)
        assert first is not None
        assert second is not None
        assert same_formulas(first, second) is verdict
