"""A proof that two formulas differ: their values at one point, bounded from both sides. Called by worker processes."""

import math
import zlib
from typing import Any

import mpmath
import sympy

_IV: Any = mpmath.iv  # whose operators have no types
_LARGEST = 1e100
"""Up to this size of a value, every function of it is quick to bound."""
_TOLERANCE = 1e-9
"""Relative. Formulas with floats that differ by less may be the same to `simplify`, which makes fractions of floats."""
_FUNCTIONS = {
    type(sympy.pi): lambda: +_IV.pi,
    type(sympy.E): lambda: +_IV.e,
    sympy.Add: lambda *terms: sum(terms, _IV.mpf(0)),
    sympy.Mul: lambda *factors: math.prod(factors, start=_IV.mpf(1)),
    sympy.Pow: lambda base, exponent: base**exponent,
    sympy.UnevaluatedExpr: lambda value: value,
    sympy.Abs: abs,
    sympy.exp: _IV.exp,
    sympy.log: lambda value, base=_IV.e: _IV.log(value) / _IV.log(base),
    sympy.sin: _IV.sin,
    sympy.cos: _IV.cos,
    sympy.tan: _IV.tan,
    sympy.cot: _IV.cot,
}


def are_different(first: sympy.Basic | sympy.MatrixBase, other: sympy.Basic | sympy.MatrixBase) -> bool:
    """Whether two formulas have different values where every variable has a value between 1/2 and 1, given by its name.

    Interval arithmetic decides, so rounding cannot. False proves nothing: a formula with anything but real numbers,
    real variables and the functions above, or with a value over 1e100, is not read.
    """
    try:
        a, b = _enclosure(first), _enclosure(other)
    except (LookupError, ArithmeticError, ValueError, RecursionError):
        return False
    return (abs(a - b) > _TOLERANCE * (abs(a) + abs(b))) is True  # None if the intervals cannot tell


def _enclosure(formula: Any) -> Any:
    if isinstance(formula, sympy.Rational):
        value = _IV.mpf(formula.p) / formula.q
    elif isinstance(formula, sympy.Float):
        value = _IV.mpf(float(formula)) * _IV.mpf([1 - _TOLERANCE, 1 + _TOLERANCE])
    elif isinstance(formula, sympy.Symbol) and formula.is_real:
        value = _IV.mpf(0.5 + zlib.crc32(formula.name.encode()) / 2**33)
    else:
        value = _FUNCTIONS[type(formula)](*map(_enclosure, formula.args))
    if not isinstance(value, _IV.mpf) or not abs(value) < _LARGEST:
        raise OverflowError  # or a complex number
    return value
