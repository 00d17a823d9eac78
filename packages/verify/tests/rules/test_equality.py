"""Exact values are compared exactly, however huge or tiny their parts are; decimals keep their tolerance."""

import random
from collections.abc import Callable

import pytest
import sympy

from cooper_verify.rules.verdicts.symbolic import maths_verdict

DIFFERENT = [
    (r"\frac{1}{2^{98}}", r"\frac{1}{2^{100}}"),
    (r"\frac{1}{2^{98}}", "0"),
    (r"\frac{1}{2^{98}}", "0.000"),
    (r"\sqrt{2}\cdot 10^{-20}", r"\sqrt{3}\cdot 10^{-20}"),
    (r"\frac{\sqrt{3}}{2}", r"\frac{\sqrt{3}}{2}+\frac{30!}{29!}"),
    (r"\frac{\sqrt{3}}{2}", r"\frac{\sqrt{3}}{2}+10^{-200}"),
    (r"\frac{\sqrt{3}}{2}", r"\frac{3}{2\sqrt{3}}+10^{-200}"),
    (r"10^{100}+\sqrt{2}", r"10^{100}+\sqrt{3}"),
    (r"\sqrt{10^{100}+1}", "10^{50}"),
    ("e^{-100}", "e^{-101}"),
    ("x", "x+10^{-20}"),
    (r"\frac{x}{2^{98}}", r"\frac{x}{2^{100}}"),
    ("5", "9^{9^{9}}"),
    ("5", "9^{9^{9^{9^{9}}}}"),
    ("0", "9^{-9^{9^{9}}}"),
    ("5", r"7^{7^{7^7}} - 1"),
    ("9^{9^{9}}", "5"),
    ("1", r"(1/2)^{10^{30}}"),
    ("5", "(-1)^{10^{30}}"),
    (r"\frac{x}{30!}", r"\frac{x}{31!}"),
    (r"(1, \sqrt{2}\cdot 10^{-20})", r"(1, \sqrt{3}\cdot 10^{-20})"),
    (r"\{1, 10^{-20}\sqrt{2}\}", r"\{1, 10^{-20}\sqrt{3}\}"),
    (r"[0, 10^{-20}\sqrt{2}]", r"[0, 10^{-20}\sqrt{3}]"),
    (r"\begin{pmatrix} 10^{-20}\sqrt{2} \\ 1 \end{pmatrix}", r"\begin{pmatrix} 10^{-20}\sqrt{3} \\ 1 \end{pmatrix}"),
    (r"x = 10^{-20}\sqrt{2}", r"x = 10^{-20}\sqrt{3}"),
    (r"x > 10^{-20}\sqrt{2}", r"x > 10^{-20}\sqrt{3}"),
    (r"(0.5, 2^{-98})", "(0.5, 0.0)"),
    (r"0.56 = 56\%", r"0.56 = 26\%"),
    ("x^2 + 1 = 0", "x^2 + 4 = 0"),
]
EQUAL = [
    (r"\frac{1}{2^{98}}", "2^{-98}"),
    (r"\frac{2^{2005}+1}{3 \cdot 2^{2006}}", r"\frac{1}{6}+\frac{1}{3 \cdot 2^{2006}}"),
    (r"\frac{52!}{47!}", r"52\cdot 51\cdot 50\cdot 49\cdot 48"),
    (r"\frac{\sqrt{3}}{2}+10^{-200}", r"10^{-200}+\frac{3}{2\sqrt{3}}"),
    (r"\sqrt{3+2\sqrt{2}}", r"1+\sqrt{2}"),
    (r"x\sqrt{3+2\sqrt{2}}", r"x+\sqrt{2}x"),
    (r"\frac{\sqrt{\sqrt{11}+\sqrt{194}}}{15+2\sqrt{33}}", r"\frac{\sqrt{\sqrt{194}+\sqrt{11}}}{2\sqrt{33}+15}"),
    (r"\sqrt{2}", "1.414214"),
    (r"\frac13", "0.333333"),
    (r"\frac13 x", "0.333333333333333x"),
    ("0.1+0.2", r"\frac{3}{10}"),
    (r"\sqrt{2}\cdot 10^{-20}", r"1.414214\cdot 10^{-20}"),
]

Term = tuple[str, sympy.Expr]


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_values_that_differ_are_different_in_both_directions(first: str, second: str):
    assert maths_verdict(first, rf"\boxed{{{second}}}") == "wrong"
    assert maths_verdict(second, rf"\boxed{{{first}}}") == "wrong"


@pytest.mark.parametrize(("reference", "answer"), EQUAL)
def test_values_that_are_equal_are_correct_in_every_form(reference: str, answer: str):
    assert maths_verdict(reference, rf"\boxed{{{answer}}}") == "correct"


def _term(draw: random.Random) -> Term:
    n, q, m, a = draw.randint(2, 9), draw.randint(2, 9), draw.randint(2, 120), draw.randint(20, 60)
    terms: list[Callable[[], Term]] = [
        lambda: (f"{n}^{{{m}}}", sympy.Integer(n) ** m),
        lambda: (rf"\frac{{1}}{{{n}^{{{m}}}}}", sympy.Integer(n) ** -m),
        lambda: (rf"\frac{{{a}!}}{{{a - q}!}}", sympy.factorial(a) / sympy.factorial(a - q)),
        lambda: (rf"\binom{{{a}}}{{{q}}}", sympy.binomial(a, q)),
        lambda: (rf"\sqrt{{{n}}}", sympy.sqrt(n)),
        lambda: (rf"\frac{{{n}}}{{{q}}}", sympy.Rational(n, q)),
        lambda: (f"e^{{-{m}}}", sympy.exp(-m)),
    ]
    return draw.choice(terms)()


def _product(draw: random.Random) -> Term:
    (first, value), (second, factor) = _term(draw), _term(draw)
    product = rf"{first}\cdot {second}", value * factor
    return draw.choice([product, (rf"\frac{{{first}}}{{{second}}}", value / factor), (first, value)])


def _pair(draw: random.Random) -> tuple[str, str, sympy.Expr]:
    """Two formulas, and the difference of their values."""
    (first, value), (second, another), (term, size) = _product(draw), _product(draw), _term(draw)
    return draw.choice(
        [
            (first, second, value - another),
            (first, f"{first}+{term}", -size),
            (f"{first}+{term}", f"{first}-{term}", 2 * size),
            (first, rf"{term}+{first}-{term}", sympy.S.Zero),
            (first, rf"\frac{{7\left({first}\right)}}{{7}}", sympy.S.Zero),
            (f"{first}+{second}", f"{second}+{first}", sympy.S.Zero),
        ]
    )


TOO_LARGE = [
    ("5", "9^{9^{9}} - 9^{9^{9}}"),
    ("5", "1.0000001^{10^{12}}"),
    ("5", "e^{e^{e^{e^{e}}}}"),
    ("5", r"\pi^{9^{9^9}}"),
    ("5", r"\sqrt[9^{9^9}]{2}"),
    ("x", "x^{9^{9^9}}"),
    ("5!", "(10^9)!"),
    ("9^{9^{9}}", "9^{9^{9}} + 1"),
    ("1", r"2^{3^{3100} - 3^{1550} \cdot 3^{1550}}"),
]
"""Equal or not: nobody computes it."""


@pytest.mark.parametrize(("reference", "answer"), TOO_LARGE)
def test_what_is_too_large_to_be_computed_is_not_compared(reference: str, answer: str):
    assert maths_verdict(reference, rf"\boxed{{{answer}}}") == "unparsed"


def test_equal_towers_are_equal():
    assert maths_verdict("9^{9^{9}}", r"\boxed{9^{9^{9}}}") == "correct"


def test_generated_values_are_correct_exactly_if_they_are_equal():
    draw = random.Random(40)
    pairs = [_pair(draw) for _ in range(200)]
    verdicts = [maths_verdict(first, rf"\boxed{{{second}}}") for first, second, _ in pairs]
    equal = [sympy.simplify(difference) == 0 for *_, difference in pairs]
    assert 60 < sum(equal) < 140
    wrong = [pair for pair, verdict, same in zip(pairs, verdicts, equal, strict=True) if (verdict == "correct") != same]
    assert wrong == []


@pytest.mark.parametrize("value", ["5", "5.0", "5.05", "4.9"])
def test_a_number_may_be_what_a_measured_value_means(value: str):
    for measured in (r"5.0\pm0.1", r"5.0 \pm 0.1\text{ cm}", "5.0 \u00b1 0.1"):
        assert maths_verdict(measured, rf"\boxed{{{value}}}") == "unparsed"
        assert maths_verdict(value, rf"\boxed{{{measured}}}") == "unparsed"
        assert maths_verdict(measured, rf"\boxed{{{measured}}}") == "correct"
        assert maths_verdict(measured, r"\boxed{5.2}") == maths_verdict(measured, r"\boxed{5.0\pm0.2}") == "wrong"
    assert maths_verdict(r"2\pm\sqrt{3}", rf"\boxed{{{value}}}") == "wrong"
