"""When two expressions are equal: exact values exactly, decimals to the digits they have, formulas as functions."""

import math
from collections.abc import Callable
from fractions import Fraction

from cooper_verify.rules.values.estimate import (
    agree_on_whole_numbers,
    agree_where_positive,
    agree_where_small,
    are_different,
    value_of,
)
from cooper_verify.rules.values.formula import INVERSE_TRIGONOMETRIC, TRIGONOMETRIC
from cooper_verify.rules.values.tree import Tree, canonical, constant, has, has_decimal, heads, names

Symbolic = Callable[[Tree, Tree], bool | None]
"""Whether two formulas are equal, where only computer algebra can tell; None if it cannot either."""
_PLACES = 6
"""Decimal places to which a decimal and an exact value agree: 0.333333 is 1/3. A small number's leading zeros are not
counted."""


class UnprovenError(ValueError):
    """Two formulas could neither be shown to be equal nor to differ."""


def same(first: Tree, other: Tree, symbolic: Symbolic) -> bool:
    """Whether two expressions have the same value. Raises UnprovenError where that could not be found."""
    if canonical(first) == canonical(other):
        return True
    if has(first, "oo") or has(other, "oo"):
        return False
    decimals = [tree for tree in (first, other) if tree[0] == "number" and tree[2]]
    values = constant(first), constant(other)
    if None not in values:
        return bool(decimals) and _rounded_alike(*values)  # pyright: ignore[reportArgumentType]
    if decimals:
        sizes = _size(first), _size(other)
        if None not in sizes:
            return _rounded_alike(*sizes)  # pyright: ignore[reportArgumentType]
    variables = names(first) | names(other)
    if variables and _may_count(first, other) and agree_on_whole_numbers(first, other):
        if "i" in variables or not are_different(first, other):
            return _proven(symbolic(first, other) or None)
        raise UnprovenError  # sin(n pi) and 0
    if "i" not in variables and are_different(first, other):
        if _has_branches(first, other) and agree_where_small(first, other):
            raise UnprovenError  # 2 arctan x and arctan(2x/(1 - x^2))
        return False
    verdict = symbolic(first, other)
    if not verdict and _asks_for_domain(first, other) and agree_where_positive(first, other):
        raise UnprovenError
    has_other_value = not verdict and any(map(_has_other_value, (first, other)))
    return _proven(None if has_other_value else verdict)


def _has_other_value(tree: Tree) -> bool:
    """Whether a tree has a power whose value takes a convention or a domain: `(-8)^{1/3}`, `i^{4n}`."""
    if tree[0] == "^":
        base, exponent = constant(tree[1]), constant(tree[2])
        if base is not None and base < 0 and exponent is not None and exponent.denominator != 1:
            return True
        if tree[1] == ("name", "i") and exponent is None:
            return True
    return any(_has_other_value(part) for part in tree[1:] if isinstance(part, tuple))


def _may_count(first: Tree, other: Tree) -> bool:
    """Whether the values of two formulas may be meant for whole numbers alone: `(-1)^n`, `\\cos n\\pi`."""
    return _asks_for_domain(first, other) or not _COUNTED.isdisjoint(heads(first, other))


_COUNTED = {*TRIGONOMETRIC, "floor", "ceil"}


def _has_branches(first: Tree, other: Tree) -> bool:
    return not INVERSE_TRIGONOMETRIC.isdisjoint(heads(first, other))


def _proven(verdict: bool | None) -> bool:
    if verdict is None:
        raise UnprovenError
    return verdict


def _asks_for_domain(first: Tree, other: Tree) -> bool:
    """Whether the values of two formulas depend on what their variables may be: roots, logarithms, powers of -1."""
    return bool(names(first) | names(other)) and any(map(_has_domain, (first, other)))


def _has_domain(tree: Tree) -> bool:
    if tree[0] in ("log", "ln", "abs", *INVERSE_TRIGONOMETRIC):
        return True
    if tree[0] == "^" and ((exponent := constant(tree[2])) is None or exponent.denominator != 1):
        return True
    return any(_has_domain(part) for part in tree[1:] if isinstance(part, tuple))


def _rounded_alike(one: Fraction, other: Fraction) -> bool:
    places = _PLACES + max(_leading_zeros(one), _leading_zeros(other))
    return round(one, places) == round(other, places)


def _leading_zeros(value: Fraction) -> int:
    """How many decimals of a small number are zero, if there are more than two: so many more have to be compared."""
    if value == 0:
        return 0
    size = math.log10(abs(value.numerator)) - math.log10(value.denominator)
    return math.ceil(-size) if size < -3 else 0


def _size(tree: Tree) -> Fraction | None:
    """The value of a constant, exactly or to the precision of floats; None if it has none that is finite."""
    if (value := constant(tree)) is not None:
        return value
    size = value_of(tree)
    return None if size is None or not math.isfinite(size) else Fraction(size)


def is_rounded(rounded: Tree, exact: Tree) -> bool:
    """Whether a decimal of three or more significant figures is an exact value, rounded to its last decimal."""
    if rounded[0] != "number" or not rounded[2] or has_decimal(exact) or names(exact):
        return False
    size = _size(exact)
    places = decimal_places(rounded[1])
    if places is None or not size or abs(rounded[1]) * 10**places < 100:
        return False
    return abs(size - rounded[1]) <= Fraction(1, 2 * 10**places)


def is_rounding(answer: Tree, reference: Tree) -> bool:
    """Whether a number of two or more significant figures is the reference, rounded further."""
    if answer[0] != "number":
        return False
    places = decimal_places(answer[1])
    size = _size(reference)
    if (
        size is None
        or places is None
        or abs(answer[1]) * 10**places < 10
        or abs(size - answer[1]) > Fraction(1, 2 * 10**places)
    ):
        return False
    return has_decimal(reference) or places > 0


_NEAR = 0.001


def is_estimate(reference: Tree, answer: Tree) -> bool:
    """Whether a reference of one or two figures may be an exact value, rounded (`0.33` and 1/3), or an expression with
    decimals is near the reference: `12 \\cdot 3.14` and 12 pi."""
    if reference[0] == "number" and reference[2] and not has_decimal(answer):
        return is_rounding(reference, answer)
    if answer[0] == "number" or not has_decimal(answer):
        return False
    sizes = value_of(reference), value_of(answer)
    return None not in sizes and abs(sizes[0] - sizes[1]) <= _NEAR * abs(sizes[0])  # pyright: ignore


def decimal_places(value: Fraction) -> int | None:
    """The number of decimals of a value; None if they do not end."""
    for places in range(19):
        if (value * 10**places).denominator == 1:
            return places
    return None
