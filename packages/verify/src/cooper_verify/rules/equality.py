"""Whether two values are equal: exact ones exactly, decimals to the digits that Math-Verify rounds them to.

Math-Verify takes a difference for zero if it is tiny, and in a sum or a product of huge and tiny numbers it takes the
tiny ones for zero: `2^{-98}` is `2^{-100}` to it. Here a difference of constants is computed to a relative precision,
and it is zero if a hundred digits cannot tell it from zero; where one may be beyond those, sympy has to prove it.

For worker processes.
"""

import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import sympy
from latex2sympy2_extended.sets import FiniteSet
from math_verify import grader

from cooper_verify.rules.enclosure import are_different

_DECIMAL_TOLERANCE = 1e-12
"""Relative, where decimals are part of an expression: sympy has 15 digits of them."""
_ANALYTIC = (sympy.Add, sympy.Mul, sympy.Pow, sympy.exp, sympy.log, sympy.UnevaluatedExpr, sympy.Number, sympy.Symbol)
_ANALYTIC += (sympy.NumberSymbol, sympy.sin, sympy.cos, sympy.tan, sympy.cot)
"""Formulas of these alone that agree at several points, of different size and sign, are the same."""
_POINTS = ((0, 1), (-4, 1), (7, 5))
"""Where each interval of values of a variable begins, and its width."""
_TINY = 1e-40

by_simplify = grader.sympy_symbolic_eq
"""Whether Math-Verify sees that two formulas are equal. If they are not, it transforms their difference to the end."""
_by_rounding = grader.sympy_numeric_eq
_by_elements = grader.sympy_deep_compare_set_and_tuple
_by_solutions = grader.sympy_solve_and_compare


def same_numbers(gold: Any, answer: Any, places: int, precision: int) -> bool:
    """In place of Math-Verify's comparison of numbers, which rounds to decimal places or to nothing."""
    either = (gold, answer)
    if any(isinstance(value, sympy.MatrixBase | sympy.MatrixExpr) for value in either):
        return _by_rounding(gold, answer, places, precision)
    if any(grader.is_atomic_or_pct_atomic(value, sympy.Float) for value in either):
        return _by_rounding(gold, answer, places + max(map(_leading_zeros, either)), precision)
    if any(grader.is_atomic_or_pct_atomic(value, sympy.Number) for value in either) and _by_rounding(
        gold, answer, places, precision
    ):
        return True
    if not all(isinstance(value, sympy.Expr) for value in either):
        return False
    has_decimals = any(value.has(sympy.Float) for value in either)
    if not gold.free_symbols | answer.free_symbols:
        return bool(_same_decimals(gold, answer)) if has_decimals else _same_constants(gold, answer)
    return has_decimals and _agree(gold, answer, _same_decimals)


def same_formulas(gold: Any, answer: Any) -> bool:
    """In place of Math-Verify's comparison of formulas: by a proof that they differ, by transformation, by value."""
    if are_different(gold, answer):
        return False
    if by_simplify(gold, answer):
        return True
    return _is_analytic(gold) and _is_analytic(answer) and _agree(gold, answer, _vanishes)


def same_elements(gold: Any, answer: Any, places: int, precision: int) -> bool:
    """In place of Math-Verify's comparison of lists: values without names belong to names in the order of both."""
    if isinstance(gold, FiniteSet) and not any(map(grader.is_assignment_relation, answer.args)):
        written: Sequence[Any] = getattr(gold, "_unsorted_args", gold.args)
        named = [part for part in written if isinstance(part, sympy.Eq) and grader.is_assignment_relation(part)]
        if len(named) == len(gold.args) == len(answer.args) and len({str(equation.lhs)[0] for equation in named}) > 1:
            values = getattr(answer, "_unsorted_args", answer.args)
            pairs = zip(named, values, strict=True)
            return all(grader.sympy_expr_eq(equation.rhs, value, places, precision) for equation, value in pairs)
    return _by_elements(gold, answer, places, precision)


def same_solutions(gold: Any, answer: Any, places: int, precision: int) -> bool:
    """In place of Math-Verify's comparison of relations by solutions: two that have none are not the same."""
    if not _by_solutions(gold, answer, places, precision):
        return False
    return not isinstance(gold, sympy.Eq) or bool(sympy.solve(gold, gold.free_symbols))


grader.sympy_numeric_eq = same_numbers
grader.sympy_symbolic_eq = same_formulas
grader.sympy_deep_compare_set_and_tuple = same_elements
grader.sympy_solve_and_compare = same_solutions


def _leading_zeros(value: Any) -> int:
    """How many decimals of a small number are zero, if there are more than three: so many more have to be compared."""
    size = abs(sympy.N(value, 3))
    if not size.is_Float or size == 0:
        return 0
    power = math.floor(sympy.log(size, 10).evalf(6))
    return -power if power < -3 else 0


def _parts(value: Any) -> Sequence[Any]:
    """The real and the imaginary part of a computed value; none if it has not been computed."""
    parts = value.as_real_imag() if value.is_number else ()
    return parts if all(part.is_Number and part.is_finite for part in parts) else ()


def _vanishes(gold: Any, answer: Any) -> bool | None:
    """Whether a hundred digits cannot tell two constants apart; None if they cannot be computed."""
    parts = _parts((gold - answer).evalf(15))
    return all(part == 0 or getattr(part, "_prec", 53) == 1 for part in parts) if parts else None


def _same_constants(gold: Any, answer: Any) -> bool:
    if not _vanishes(gold, answer):
        return False
    return not (_is_extreme(gold) or _is_extreme(answer)) or bool(sympy.simplify(gold - answer).is_zero)


def _is_extreme(value: Any) -> bool:
    """Whether a constant in a formula is so huge or so tiny that a hundred digits may hide it."""
    parts = (part for part in sympy.preorder_traversal(value) if isinstance(part, sympy.Expr) and not part.free_symbols)
    sizes = (abs(sympy.N(part, 2)) for part in parts)
    return any(size != 0 and not _TINY < size < 1 / _TINY for size in sizes)


def _same_decimals(gold: Any, answer: Any) -> bool | None:
    parts, sizes = _parts((gold - answer).evalf(15)), [*_parts(gold.evalf(15)), *_parts(answer.evalf(15))]
    return max(map(abs, parts)) <= _DECIMAL_TOLERANCE * max(map(abs, sizes)) if parts and sizes else None


def _is_analytic(value: Any) -> bool:
    return (
        isinstance(value, sympy.Expr)
        and all(isinstance(part, _ANALYTIC) for part in sympy.preorder_traversal(value))
        and not value.has(sympy.Float)
        and not _is_extreme(value)
    )


def _agree(gold: Any, answer: Any, same: Callable[[Any, Any], bool | None]) -> bool:
    """Whether two formulas agree at two points at least, and at all where both have a value."""
    variables = gold.free_symbols | answer.free_symbols
    if not variables:
        return False
    verdicts = []
    for start, width in _POINTS:
        at = {name: start + width * sympy.Rational(zlib.crc32(name.name.encode()), 2**32) for name in variables}
        verdicts.append(same(gold.subs(at), answer.subs(at)))
    return False not in verdicts and verdicts.count(True) > 1
