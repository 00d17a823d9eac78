"""The verdict of the rule `maths` with Math-Verify, for worker processes: it may stall. No torch: they start fast."""

import re
from functools import lru_cache, partial
from typing import Any

import sympy
from math_verify import grader, verify

from cooper_base.data.verdict import Verdict
from cooper_verify.rules import equality  # noqa: F401 - replaces comparisons of Math-Verify
from cooper_verify.rules.fast_path import formula, math_segments, verdict_by
from cooper_verify.rules.number import any_number, as_decimal, plain_number
from cooper_verify.rules.reading import Value, read_formula, read_text, spelling
from cooper_verify.rules.units import without_unit

_DELIMITER = re.compile(r"\$|\\[()\[\]]")
_WITH_LETTER = re.compile(r"(-?\d{1,40}(?:\.\d{1,40})?)[NJWVAKCL]", re.ASCII)
_BOX = re.compile(r"\\boxed\{(.*)\}", re.DOTALL)

_DIGITS = re.compile(r"(?:0|[1-9]\d{0,39})(?:\.\d{1,40})?", re.ASCII)
_read_number = sympy.Number.__new__


def _number(cls: type, *given: Any) -> Any:
    """What `sympy.Number` makes of figures, without running `from sympy import *` for each of them, as it does."""
    if len(given) == 1 and isinstance(given[0], str) and _DIGITS.fullmatch(given[0]):
        return sympy.Float(given[0]) if "." in given[0] else sympy.Integer(given[0])
    return _read_number(cls, *given)


sympy.Number.__new__ = staticmethod(_number)


def _symbolic_verdict(reference: str, text: str, form: str) -> Verdict:
    """Math-Verify's verdict on one answer, a whole text (`free`), or the elements of one answer (`list`).

    An answer that cannot be read is `unparsed`, unless it is the reference in other spelling. So is all else where the
    reference cannot be read.
    """
    if spelling(_last_formula(text) if form == "free" else text) == spelling(reference):
        return "correct"
    gold = _gold(reference)
    if gold is None:
        return "unparsed"
    if form == "list":
        value = read_formula(text)
    elif form == "free":
        value = read_text(text)
    else:
        wanted = formula(text, numeric=plain_number(reference) is not None)
        value = None if wanted is None else _read(wanted)
    if value is None:
        return "wrong" if form == "list" else "unparsed"
    # Gold first: Math-Verify's comparison is not symmetric. An interval may be written as an inequality.
    readings: list[Any] = [value]
    if form == "free" and (percentage := grader.get_pct_val(value)) is not None:
        readings.append(percentage)  # of `40%`, which answers 0.4 and 40
    if verify(gold, readings, timeout_seconds=None, allow_set_relation_comp=True):
        return "correct"
    if _same_if_imaginary(gold, value):
        return "correct"
    return "unparsed" if _may_lack_its_unit(reference, value) else "wrong"


def _may_lack_its_unit(reference: str, value: Value) -> bool:
    """Whether the answer is the number of a reference like 7N, a force or seven times a variable."""
    number = _WITH_LETTER.fullmatch(reference)
    return number is not None and value == read_formula(number.group(1))


def _same_if_imaginary(gold: Value, value: Value) -> bool:
    """Whether two values that have the letter i are the same where it is the imaginary unit: `e^{i\\pi}` and -1."""
    symbols = gold.free_symbols | value.free_symbols
    letters: Any = {symbol: sympy.I for symbol in symbols if isinstance(symbol, sympy.Symbol) and symbol.name == "i"}
    if not letters:
        return False
    return verify(gold.subs(letters), [value.subs(letters)], timeout_seconds=None, allow_set_relation_comp=True)


maths_verdict = partial(verdict_by, _symbolic_verdict)
"""`maths_verdict(answer, completion, expressions=False)`: as `fast_verdict`, but never None."""


@lru_cache(maxsize=1024)
def _gold(reference: str) -> Value | None:
    number = any_number(reference)
    if number is not None:
        return read_formula(as_decimal(number))
    return read_formula(_DELIMITER.sub(" ", without_unit(reference)))


def _read(wanted: str) -> Value | None:
    """The value of what `formula` makes of an answer: the formula in a box, or a text with one."""
    if (box := _BOX.fullmatch(wanted)) is None:
        return read_text(wanted)
    value = read_formula(box.group(1))
    return read_formula(box.group(1).strip("\"'`{} \n")) if value is None else value  # JSON leaves some of them


def _last_formula(text: str) -> str:
    *_, last = [text, *math_segments(text)]
    return last
