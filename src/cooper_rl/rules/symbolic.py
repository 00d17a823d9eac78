"""The verdict of the rule `maths` with Math-Verify, for worker processes: it may stall. No torch: they start fast."""

import re
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

import sympy
from antlr4.atn.PredictionMode import PredictionMode
from latex2sympy2_extended import latex2sympy2
from math_verify import grader, parse, verify

from cooper_rl.rules.enclosure import are_different
from cooper_rl.rules.fast_path import formula, in_box, math_segments, verdict_by
from cooper_rl.rules.number import any_number, as_decimal, plain_number
from cooper_rl.rules.rule import Verdict
from cooper_rl.rules.units import without_unit

_DECIMALS = 6


class TwoStageParser(latex2sympy2.PSParser):
    """Math-Verify's parser of LaTeX, faster: first in ANTLR's mode SLL, in full where that finds no parse.

    A parse that SLL finds is the one that the full mode finds (the ANTLR reference, `PredictionMode.SLL`).
    """

    def math(self):
        self._interp.predictionMode = PredictionMode.SLL
        try:
            return super().math()
        except Exception:  # noqa: BLE001 - what Math-Verify's listener raises for a syntax error
            self._interp.predictionMode = PredictionMode.LL
            self.reset()
            return super().math()


latex2sympy2.PSParser = TwoStageParser

_DIGITS = re.compile(r"(?:0|[1-9]\d{0,39})(?:\.\d{1,40})?", re.ASCII)
_read_number = sympy.Number.__new__


def _number(cls: type, *given: Any) -> Any:
    """What `sympy.Number` makes of figures, without running `from sympy import *` for each of them, as it does."""
    if len(given) == 1 and isinstance(given[0], str) and _DIGITS.fullmatch(given[0]):
        return sympy.Float(given[0]) if "." in given[0] else sympy.Integer(given[0])
    return _read_number(cls, *given)


sympy.Number.__new__ = staticmethod(_number)
by_simplify = grader.sympy_symbolic_eq
"""Whether Math-Verify sees that two formulas are equal. If they are not, it transforms their difference to the end."""
grader.sympy_symbolic_eq = lambda gold, found: not are_different(gold, found) and by_simplify(gold, found)


def _symbolic_verdict(reference: str, text: str, form: str) -> Verdict:
    """Math-Verify's verdict on one answer, a whole text (`free`), or the elements of one answer (`list`)."""
    gold = _gold(reference)
    if form == "list":
        found, decimals = _parse(in_box(text)), _DECIMALS
    elif form == "free":
        found, decimals = _parse(text), _decimals(reference)
    else:
        wanted = formula(text, numeric=plain_number(reference) is not None)
        found, decimals = [] if wanted is None else _parse(wanted), _decimals(reference, text)
    if not found and form != "list":
        return "unparsed"
    # Gold first: Math-Verify's comparison is not symmetric. An interval may be written as an inequality.
    same = verify(gold, found, float_rounding=decimals, timeout_seconds=None, allow_set_relation_comp=True)
    return "correct" if same else "wrong"


maths_verdict = partial(verdict_by, _symbolic_verdict)
"""`maths_verdict(answer, completion, expressions=False)`: as `fast_verdict`, but never None."""


@lru_cache(maxsize=1024)
def _gold(reference: str) -> list:
    number = any_number(reference)
    if number is not None:
        return _parse(in_box(as_decimal(number)))
    return _parse(reference) if math_segments(reference) else _parse(in_box(without_unit(reference)))


def _parse(text: str) -> list:
    # Math-Verify's own time-out is off: it uses signals, which sympy's C loops ignore. The parent process kills us.
    return parse(text, parsing_timeout=None)  # pyright: ignore[reportArgumentType]


def _decimals(*texts: str) -> int:
    """The decimals that Math-Verify compares: six by default, more for a number so small that those are all zero."""
    numbers = [Decimal(number) for text in texts if (number := plain_number(text)) and "/" not in number]
    return _DECIMALS + max((-number.adjusted() for number in numbers if number and number.adjusted() < -3), default=0)
