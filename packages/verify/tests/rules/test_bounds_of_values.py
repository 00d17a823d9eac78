r"""Texts that no reader expects: chains whose sides have no size, numbers with several points, thousands of digits, and
levels in levels. Each is read, or `unparsed`, and is `correct` against itself."""

import pytest

from cooper_base.data.text import boxed
from cooper_verify.rules.kinds.maths import RuleVerifier
from cooper_verify.rules.quantities.number import figures_value
from cooper_verify.rules.values.formula import formula
from cooper_verify.rules.values.tree import canonical, number
from cooper_verify.rules.verdicts.fast_path import fast_reading

ODD = {
    "a last side with two values": r"x = \sqrt{9} = \pm 3",
    "two values first": r"\pm 3 = \sqrt{9}",
    "a side divided by zero": "9 = 1/0",
    "a side too large for a float": "9 = 10^{400}",
    "a side without a real value": r"2 = \ln(-1) = 2",
    "infinity for a number": r"3 = \infty",
    "several points and a unit": "1.2.3 m",
    "two points in a row": "1000..00 m",
    "several points in a base": "1.2.3_{10}",
    "a base of thousands of digits": f"12_{{{'1' * 4301}}}",
    "thousands of digits": "7" * 4301,
    "thousands of digits and a unit": f"{'7' * 4301} m",
    "thousands of digits behind a comma": f"0,{'7' * 4301}",
    "thousands of digits in a power of ten": rf"7 \times 10^{{{'7' * 4301}}}",
    "digits of a factor": rf"x \cdot {' '.join(['7^{1300}'] * 4)}".replace(" 7", r" \cdot 7"),
    "millions of millions": "12" + " million" * 730,
    "runs of percent": "9" + "%" * 2000,
    "runs of factorials": "8" + "!" * 1500,
    "factorials in brackets": "(" * 25 + "9" + ("!" * 40 + ")") * 25,
    "percents in a maximum": rf"\max(0, 0{'%' * 300})",
    "roots": r"\sqrt{" * 300 + "9" + "}" * 300,
    "exponents in a divisor": rf"\gcd({'2^{' * 300}2{'}' * 300}, 3)",
    "roots without braces": r"\sqrt" * 300 + "9",
    "sines of sines": r"\sin " * 300 + "x",
    "signs in an exponent": "x^" + "-" * 500 + "2",
    "towers": "2^{" * 100 + "2" + "}" * 100,
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_text_is_read_or_unparsed(name):
    text = ODD[name]
    for written in (boxed(text), f"The answer is {text}.", text):
        for expressions in (False, True):
            assert fast_reading("Why?", "9", written, expressions).verdict in ("unparsed", "wrong", None)
            fast_reading("Why?", text, written, expressions)
            fast_reading("Why?", "1 m, 10/6 cm", written, expressions)


def test_a_batch_has_all_its_verdicts():
    asked = [("9", boxed(text)) for text in ODD.values()]
    with RuleVerifier() as rule:
        said = rule.verify_many([pair for odd in asked for pair in (odd, ("9", boxed("9")))])
    assert {*said[1::2]} == {"correct"}
    assert {*said[::2]} <= {"unparsed", "wrong"}


@pytest.mark.parametrize("text", ["1.2.3", "..", ".", "", "-", "1" * 401, "1e5", "1/0", "x"])
def test_what_is_no_figure_has_no_value(text):
    assert figures_value(text) is None


@pytest.mark.parametrize(("text", "value"), [("12", 12), ("-1.5", -1.5), (".5", 0.5), ("12.", 12), ("\u0663", 3)])
def test_figures_have_their_value(text, value):
    assert figures_value(text) == value


def test_arguments_of_a_maximum_have_no_order():
    trees = [formula(text) for text in (r"\max(2, \sqrt{3}, x)", r"\max(x, \sqrt{3}, 2)")]
    assert trees[0] is not None
    assert trees[1] is not None
    assert canonical(trees[0]) == canonical(trees[1])


def test_numbers_too_long_to_be_written_are_sorted():
    huge = ("*", ("name", "x"), number(7**6000), ("name", "y"))
    assert canonical(huge) == canonical(("*", *huge[:0:-1]))
