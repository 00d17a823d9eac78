"""Math-Verify's part: whether two formulas are equal. For worker processes, because it may stall.

It is asked about two sympy expressions, which are made from trees here: nothing of a text is parsed by it, and nothing
of it is replaced. Constants are compared here, to a relative precision: to Math-Verify a tiny difference is zero.
"""

import math
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import sympy
from math_verify.grader import sympy_symbolic_eq
from sympy.core.function import AppliedUndef

from cooper_verify.rules.values.tree import MOST_BITS, Tree, bits_of, constant, has_decimal, is_beyond_computing, names
from cooper_verify.rules.verdicts.fast_path import verdict_by

_DECIMAL_TOLERANCE = 1e-12
"""Relative, where decimals are part of an expression: sympy has 15 digits of them."""
_ANALYTIC = (sympy.Add, sympy.Mul, sympy.Pow, sympy.exp, sympy.log, sympy.Number, sympy.Symbol)
_ANALYTIC += (sympy.NumberSymbol, sympy.sin, sympy.cos, sympy.tan, sympy.cot)
"""Formulas of these alone that agree at several points, of different size and sign, are the same."""
_POINTS = ((0, 1), (-4, 1), (7, 5))
"""Where each interval of values of a variable begins, and its width."""
_TINY = 1e-40
_BITS_OF_A_POINT = 36
"""Of the numerator of a value at which formulas are compared."""
_MOST_NESTED = 4
"""Logarithms, absolute values and towers in each other: sympy takes minutes where they are many."""
_LARGEST_OF_BINOMIAL = 10_000
_LARGEST_WITH_VARIABLES = 40
"""Of a number in a binomial beside a variable, which is a polynomial of that degree."""
_LARGEST_EXPONENT = 2**64
"""Of a constant that is not rational, whose power is rounded."""
_MOST_TERMS = 300
"""Of a sum that is multiplied by itself."""
_I = sympy.Symbol("i", real=True)
_SAME_NAME = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "abs": "Abs", "ceil": "ceiling", "ln": "log"}


def same_formulas(first: Tree, other: Tree) -> bool | None:
    """Whether two formulas are equal; None if that cannot be found. The letter i may be the imaginary unit."""
    for one, two in ((first, other), (other, first)):
        if is_beyond_computing(one) and constant(two) is not None and not has_decimal(one):
            return False
    one, two = expression(first), expression(other)
    if one is None or two is None:
        return None
    try:
        verdict = _are_equal(one, two, has_decimal(first) or has_decimal(other))
        if verdict or not any(value.has(_I) for value in (one, two)):
            return verdict
        return _are_equal(one.subs(_I, sympy.I), two.subs(_I, sympy.I), False)
    except OverflowError:  # a tower of powers at one of the points
        return None


def same_solutions(first: Tree, other: Tree) -> bool:
    """Whether two formulas are zero for the same values, because one is a multiple of the other."""
    one, two = expression(first), expression(other)
    if one is None or two is None or one.is_number or two.is_number:
        return False
    ratio = sympy.simplify(one / two)
    return bool(ratio.is_number and ratio.is_nonzero)


def expression(tree: Tree) -> sympy.Expr | None:
    """The sympy expression of a tree; None for what has none."""
    if _nested(tree) > _MOST_NESTED:
        return None
    try:
        return _expression(tree)
    except (LookupError, AttributeError, TypeError, ValueError, ZeroDivisionError):
        return None


def _nested(tree: Tree) -> int:
    """How many logarithms, absolute values and powers with variable exponents stand in each other."""
    inner = max((_nested(part) for part in tree[1:] if isinstance(part, tuple)), default=0)
    is_tower = tree[0] == "^" and bool(names(tree[2]))
    return inner + (is_tower or tree[0] in ("ln", "log", "abs"))


def _expression(tree: Tree) -> Any:
    head, *parts = tree
    if head == "number":
        return sympy.Rational(tree[1].numerator, tree[1].denominator)
    if head == "name":
        return sympy.Symbol(tree[1], real=True)
    if head in ("pi", "e", "oo"):
        return {"pi": sympy.pi, "e": sympy.E, "oo": sympy.oo}[head]
    if head == "apply":
        return sympy.Function(tree[1])(*map(_expression, tree[2:]))
    arguments = [_expression(part) for part in parts]
    if head == "+":
        return sympy.Add(*arguments)
    if head == "*":
        return sympy.Mul(*arguments)
    if head in ("^", "exp", "factorial"):
        return _bounded(head, *arguments)
    if head == "degrees":
        return arguments[0] * sympy.pi / 180
    if head == "log" and len(arguments) == 1:
        return sympy.log(arguments[0]) / sympy.Symbol("log", positive=True)
    if head == "binomial":
        largest = _LARGEST_OF_BINOMIAL if all(part.is_number for part in arguments) else _LARGEST_WITH_VARIABLES
        if any(abs(part) > largest for part in arguments if part.is_number):
            raise ValueError(head)
    if head in ("min", "max"):
        return getattr(sympy, head.capitalize())(*arguments)
    if head == "+-":
        raise ValueError(head)
    return getattr(sympy, _SAME_NAME.get(head, head))(*arguments)


def _bounded(head: str, *arguments: Any) -> Any:
    """A power or a factorial. Raises ValueError where its value, at a point if it has variables, is too large to
    compute: a tower of powers would take all of an answer's time."""
    base, exponent = arguments if head == "^" else (sympy.E, arguments[0])
    size = abs(exponent.evalf(15)) if exponent.is_number else 0
    bits = 0
    if head == "factorial":
        bits = sympy.log(size, 2) if size > 2 else 1
    elif base.is_Rational:
        bits = bits_of(base) - 1
    elif base.free_symbols:
        bits = _BITS_OF_A_POINT
    if head == "^" and base.is_Add and base.free_symbols and _terms(len(base.args), size) > _MOST_TERMS:
        raise ValueError(head)
    if (size > _LARGEST_EXPONENT and not base.is_Rational) or size * bits > MOST_BITS:
        raise ValueError(head)
    return sympy.Pow(*arguments) if head == "^" else getattr(sympy, head)(*arguments)


def _terms(count: int, exponent: Any) -> int:
    """How many terms a power of a sum has when it is multiplied out."""
    power = int(min(exponent, _MOST_TERMS))
    return math.comb(power + count - 1, count - 1)


def _are_equal(gold: Any, answer: Any, has_decimals: bool) -> bool | None:
    if gold == answer:
        return True
    if gold.has(AppliedUndef) or answer.has(AppliedUndef):
        return True if sympy_symbolic_eq(gold, answer) else None
    is_constant = not gold.free_symbols | answer.free_symbols
    if has_decimals:
        return _same_decimals(gold, answer) if is_constant else _agree(gold, answer, _same_decimals)
    if is_constant:
        return _same_constants(gold, answer)
    if sympy_symbolic_eq(gold, answer):
        return True
    agree = _agree(gold, answer, _vanishes)
    return agree if agree is not True or (_is_analytic(gold) and _is_analytic(answer)) else None


def _parts(value: Any) -> Sequence[Any]:
    """The real and the imaginary part of a computed value; none if it has not been computed."""
    parts = value.as_real_imag() if value.is_number else ()
    return parts if all(part.is_Number and part.is_finite for part in parts) else ()


def _vanishes(gold: Any, answer: Any) -> bool | None:
    """Whether a hundred digits cannot tell two constants apart, or a thousand where one may be hidden; None if they
    cannot be computed."""
    difference = gold - answer
    digits = 1000 if _is_extreme(gold) or _is_extreme(answer) else 100
    parts = _parts(difference.evalf(15, maxn=digits))
    return all(part == 0 or getattr(part, "_prec", 53) == 1 for part in parts) if parts else None


def _same_constants(gold: Any, answer: Any) -> bool | None:
    vanishes = _vanishes(gold, answer)
    if not vanishes or not (_is_extreme(gold) or _is_extreme(answer)):
        return vanishes
    return True if sympy.simplify(gold - answer).is_zero else None


def _is_extreme(value: Any) -> bool:
    """Whether a constant in a formula is so huge or so tiny that a hundred digits may hide it, or has no value."""
    parts = (part for part in sympy.preorder_traversal(value) if isinstance(part, sympy.Expr) and not part.free_symbols)
    sizes = (abs(sympy.N(part, 2)) for part in parts)
    return any(_has_no_value(size) or (size != 0 and not _TINY < size < 1 / _TINY) for size in sizes)


def _has_no_value(size: Any) -> bool:
    """Whether sympy cannot compare a constant with a number: it is 0/0, or could not be computed."""
    return size is sympy.nan or not size.is_Number


def _same_decimals(gold: Any, answer: Any) -> bool | None:
    parts, sizes = _parts((gold - answer).evalf(15)), [*_parts(gold.evalf(15)), *_parts(answer.evalf(15))]
    return max(map(abs, parts)) <= _DECIMAL_TOLERANCE * max(map(abs, sizes)) if parts and sizes else None


def _is_analytic(value: Any) -> bool:
    return (
        isinstance(value, sympy.Expr)
        and all(isinstance(part, _ANALYTIC) for part in sympy.preorder_traversal(value))
        and not _is_extreme(value)
    )


def _agree(gold: Any, answer: Any, same: Callable[[Any, Any], bool | None]) -> bool | None:
    """Whether two formulas agree at two points at least, and at all where both have a value; None for one point."""
    variables = gold.free_symbols | answer.free_symbols
    verdicts = []
    for start, width in _POINTS:
        at = {name: start + width * sympy.Rational(zlib.crc32(name.name.encode()), 2**32) for name in variables}
        verdicts.append(same(gold.subs(at), answer.subs(at)))
    return False if False in verdicts else True if verdicts.count(True) > 1 else None


maths_verdict = partial(verdict_by, same_formulas, same_solutions)
"""`maths_verdict(answer, completion, expressions=False)`: as `fast_verdict`, but never None."""
