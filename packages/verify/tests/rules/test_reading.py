"""A formula is read whole or not at all, as a reference and as an answer."""

import json
import re

import pytest

from cooper_verify.rules.answer.extraction import reference_text
from cooper_verify.rules.values.reading import readings
from cooper_verify.rules.values.spelling import spelling
from cooper_verify.rules.verdicts.fast_path import reference_kind
from cooper_verify.rules.verdicts.symbolic import maths_verdict
from repository import SHARED

PROBLEMS = SHARED / "data/problems"
UNREADABLE = [
    (r"x^2+1 \quad (x \ge 2)", r"x^2+2 \quad (x \ge 2)"),
    (r"2^n \ (n \in \mathbb{N})", r"3^n \ (n \in \mathbb{N})"),
    (r"1, 2, \ldots, n-1", r"1, 2, \ldots, n-2"),
    (r"\{1, 3, 5, \dots\}", r"\{1, 3, 7, \dots\}"),
    (r"\begin{cases} x=1 & \\ y=2 \end{cases}", r"\begin{cases} x=3 & \\ y=2 \end{cases}"),
    (r"3 \bmod n", r"3 \bmod m"),
    (r"A \subset B", r"B \subset A"),
    (r"a \mid b", r"b \mid a"),
    (r"A \setminus B", r"B \setminus A"),
    (r"k=3 \Rightarrow n=2", r"n=2 \Rightarrow k=3"),
    (r"p \land q", r"p \lor q"),
    (r"\forall x", r"\exists x"),
    (r"x \to 2", r"y \to 2"),
    (r"P(A|B)", r"P(B|A)"),
    (r"\sin_2 x", r"\sin_3 x"),
]
DIFFERENT = [
    ("f'(x)", "f(x)"),
    ("f''(x)=2", "f'(x)=2"),
    ("y' = 2x", "y = 2x"),
    ("x^T", "x"),
    (r"n \choose 2", r"m \choose 2"),
    (r"\min\{n,10\}", r"\min\{m,10\}"),
    (r"\min\{n,10\}", "10"),
    ("x=1, y=2", "x=2, y=1"),
    (r"x>1 \text{ or } x<0", r"x>1 \text{ and } x<0"),
    (r"\pi(R^2-r^2)", "0"),
    (r"a=1 \quad b=2", "2"),
    ("2ab", "2"),
    (r"\frac12 t", r"\frac12"),
    (r"2^n \text{ for } n \ge 3", "3"),
    (r"5 \text{ if } n \text{ is even}", "5"),
    ("2", r"2 \text{ if even}"),
    ("5", "2(3)"),
    ("12", r"2\binom{5}{2}"),
    ("2^3_5", "8"),
    (r"0.\dot{3}", r"0.\dot{4}"),
]
EQUAL = [
    ("f'(x)=2x", "f'(x)=x+x"),
    ("f'(x)", r"f^{\prime}(x)"),
    ("f''(0)=2", r"f^{\prime\prime}(0)=2"),
    (r"n \choose 2", r"\frac{n(n-1)}{2}"),
    (r"\max\{a, 2\}", r"\max(2, a)"),
    ("x=1, y=2", "1, 2"),
    ("x=1, y=2", r"x=1 \qquad y=2"),
    ("x=1, y=2", "y=2, x=1"),
    ("x_1=1, x_2=2", "2, 1"),
    ("1<x<3", r"x>1 \text{ and } x<3"),
    (r"\pi(R^2-r^2)", r"\pi R^2-\pi r^2"),
    ("ab+bc", "bc+ab"),
    (r"8\sqrt{3}", r"8\sqrt{3} \text{ in}^2"),
    ("90", r"90 \text{ degrees}"),
    (r"\frac{\pi}{2}", r"\frac\pi2"),
    (r"\frac{2}{25}", r"8 \%"),
    (r"\frac52", r"2\frac12"),
    ("6x", "2(3)x"),
    (r"\langle 1, 2 \rangle", "(1, 2)"),
    (r"3 \pmod 5", r"3 \pmod{5}"),
    (r"x^2+1 \quad (x \ge 2)", r"x^2 + 1\ \left(x \geq 2\right)"),
    (r"\begin{cases} x & x>\frac12 \\ y=2 \end{cases}", r"\begin{cases} x & x > \dfrac{1}{2} \\ y = 2\end{cases}"),
]
NUMBER = re.compile(r"(?<![\\\w])\d+")


def boxed(text: str) -> str:
    return rf"\boxed{{{text}}}"


@pytest.mark.parametrize(("formula", "second"), UNREADABLE)
def test_a_formula_that_cannot_be_read_is_compared_as_text(formula: str, second: str):
    assert maths_verdict(formula, boxed(formula)) == "correct"
    assert maths_verdict(formula, boxed(second)) == "unparsed"


@pytest.mark.parametrize("formula", [formula for pair in UNREADABLE for formula in pair])
def test_no_number_inside_an_unreadable_formula_counts(formula: str):
    for number in NUMBER.findall(formula):
        assert maths_verdict(formula, boxed(number)) != "correct"
        assert maths_verdict(number, boxed(formula)) != "correct"
        assert maths_verdict(number, f"So it is ${formula}$.") != "correct"


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_no_symbol_is_dropped(first: str, second: str):
    assert maths_verdict(first, boxed(second)) != "correct"
    assert maths_verdict(second, boxed(first)) != "correct"


@pytest.mark.parametrize("answer", ["2, 1", "(2, 1)", r"y=1 \text{ and } x=2"])
def test_values_belong_to_names_in_their_order(answer: str):
    assert maths_verdict("x=1, y=2", boxed(answer)) == "wrong"


@pytest.mark.parametrize(("reference", "answer"), EQUAL)
def test_the_same_in_another_form_is_correct(reference: str, answer: str):
    assert maths_verdict(reference, boxed(answer)) == "correct"


@pytest.mark.parametrize("text", ["x^2+1 for x >= 2", "The answer is x^2+1 for x > 2.", "So it is x > 2"])
def test_a_bound_is_not_the_number(text: str):
    assert maths_verdict("2", text if " is " in text else boxed(text)) != "correct"


def test_of_a_calculation_in_a_text_the_result_counts():
    assert maths_verdict("47", r"So $5 \star 1 = 45+2 = 47$.") == "correct"
    assert maths_verdict("47", r"So $5 \star 1 = 45 \star 2 = 47$.") == "unparsed"


def test_spellings_that_mean_the_same():
    assert spelling(r"\left( \dfrac12, x^{2} \right).") == spelling(r"(\frac{1}{2},x^2)")
    assert spelling("1 2") != spelling("12")
    assert spelling("x_{12}") != spelling("x_12y")


def changed(formula: str) -> list[str]:
    """The formula with a figure, a letter or a sign changed, each in turn."""
    variants = []
    for symbol in re.finditer(r"\\[A-Za-z]+|[0-9A-Za-z+<>-]", formula):
        new = {"+": "-", "-": "+", "<": ">", ">": "<"}.get(symbol.group())
        if new is None and len(symbol.group()) == 1:
            new = "57"[symbol.group() == "5"] if symbol.group().isdigit() else "wv"[symbol.group() == "w"]
        if new is not None:
            variants.append(formula[: symbol.start()] + new + formula[symbol.end() :])
    return variants


@pytest.mark.parametrize(
    "formula",
    [
        r"\frac{x+1}{2y-3}",
        r"a_{n+1} = 2a_n + 1",
        r"\sqrt[3]{x} + \log_2 8",
        r"(-\infty, 3] \cup [5, x)",
        r"\sum_{k=1}^{n} k^2",
        r"\binom{n+1}{3} - 2^{n-1}",
        r"\begin{pmatrix} 1 & x \\ y & 4 \end{pmatrix}",
        "1 < x < 3, y > 2",
        r"\frac{-b + \sqrt{b^2 - 4ac}}{2a}",
        r"n \choose 2",
        r"3 \pmod{5}",
        r"x^2 + 1 \quad (x > 2)",
        r"\begin{cases} x + 1, & x > 0 \\ 2, & x < 0 \end{cases}",
    ],
)
def test_every_symbol_counts(formula: str):
    assert maths_verdict(formula, boxed(formula)) == "correct"
    assert [second for second in changed(formula) if maths_verdict(formula, boxed(second)) == "correct"] == []


@pytest.mark.slow
def test_nearly_all_references_of_the_math_data_set_are_read_and_no_figure_of_them_is_dropped():
    path = PROBLEMS / "math_train_answers.json"
    if not path.exists():
        pytest.skip(f"the problems are not on this machine ({path})")
    answers = {reference_text(str(row["answer"] or "")) for row in json.loads(path.read_text("utf-8"))}
    formulas = sorted(first for first in answers if first and reference_kind(first) == "maths" and "\\" in first)
    assert len(formulas) > 1000
    assert sum(not readings(first) for first in formulas) < 10
    for first in formulas[::5]:
        for second in changed(first):
            if spelling(second) != spelling(first) and not re.search(r"text|mbox|mathrm|circ|%|^[A-Za-z] *=", first):
                assert maths_verdict(first, boxed(second)) != "correct", (first, second)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (r"e^{i\pi}", "-1", "correct"),
        (r"1+i", r"\sqrt{2}e^{i\pi/4}", "correct"),
        (r"\{1, i\}", "1, i", "correct"),
        ("1+i", "1-i", "wrong"),
        ("3i", "3", "wrong"),
        ("i", "j", "wrong"),
    ],
)
def test_the_letter_i_may_be_the_imaginary_unit(first: str, second: str, verdict: str):
    assert maths_verdict(first, boxed(second)) == verdict
