"""The parser of two stages finds what Math-Verify's own finds."""

import pytest
from latex2sympy2_extended import latex2sympy2

from cooper_verify.rules.reading import TwoStageParser

NEEDS_THE_FULL_MODE = ("x^2+1=0", r"\sum_{n=1}^\infty \frac{1}{n^2}", "2x_1", r"\int_0^1 x dx")
FORMULAS = (
    *NEEDS_THE_FULL_MODE,
    *("-3", "1,000", "2^{10}", r"\frac{1}{2}", r"\sqrt[3]{8}", "n!", "|x-1|", r"\log_2 8", r"50\%", r"\pm 3", "f(2)"),
    *("a(b+c)", r"\sin x \cos x", r"\sin^2(x)", "f(x)=x", r"y=\frac{x}{2}", r"1 < x \leq 3", r"x \in (1,2)"),
    *("(-2,1)", r"[2, \frac{18}{5})", r"(-\infty, 3]", r"(2,12)\cup(12,102)", "(a,b,c)", "[1,2]"),
    *("1,2,3", r"\{1,2\}", "x=1,y=2", "(1,2),(3,4)", r"\{(1,2),(2,3)\}", r"x>1 \text{ or } x<0"),
    r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
)
NO_FORMULAS = ("x +", r"\frac{1}", r"\{x | x>1\}", r"\begin{cases} x & 1 \\ 2 & 3\end{cases}", "((", "")


class FastModeOnly(TwoStageParser):
    def reset(self):
        raise LookupError("the fast mode found no parse")


def parsed(formula, parser, monkeypatch):
    monkeypatch.setattr(latex2sympy2, "PSParser", parser)
    try:
        return repr(latex2sympy2.latex2sympy(formula))
    except LookupError:
        raise
    except Exception:  # noqa: BLE001 - Math-Verify's listener raises nothing narrower
        return "no formula"


@pytest.mark.parametrize("formula", FORMULAS + NO_FORMULAS)
def test_both_parsers_find_the_same(formula, monkeypatch):
    own = parsed(formula, TwoStageParser.__base__, monkeypatch)
    assert parsed(formula, TwoStageParser, monkeypatch) == own
    assert (own == "no formula") == (formula in NO_FORMULAS)


@pytest.mark.parametrize("formula", NEEDS_THE_FULL_MODE)
def test_the_second_stage_is_needed(formula, monkeypatch):
    with pytest.raises(LookupError):
        parsed(formula, FastModeOnly, monkeypatch)
