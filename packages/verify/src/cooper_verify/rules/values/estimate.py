"""Values of formulas in floating point, each with a bound of its error: a proof that two formulas differ."""

import math
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from fractions import Fraction

from cooper_verify.rules.values.formula import TRIGONOMETRIC
from cooper_verify.rules.values.tree import Tree, names

_ROUNDING = 2.0**-49
"""Relative error of one operation, with a margin over the 2^-53 of IEEE doubles."""
_LARGEST = 1e100
_POINTS = 5
_SMALLEST, _LARGEST_NAME = 0.05, 4.0
"""Between these are the values of variables at a point, given by their names."""
Estimate = tuple[float, float]
"""A value and a bound of its error."""


class NoEstimateError(ValueError):
    """A formula has no real value that is quick to bound."""


def are_different(first: Tree, other: Tree) -> bool:
    """Whether two formulas have different real values at a point where both have one.

    False proves nothing: a formula with anything but real numbers, variables and the functions here is not read.
    """
    for point in range(_POINTS):
        try:
            (a, error), (b, other_error) = estimate(first, point), estimate(other, point)
        except (NoEstimateError, ArithmeticError, ValueError):
            continue
        return abs(a - b) > error + other_error + 1e-9 * max(abs(a), abs(b))
    return False


def agree_where_positive(first: Tree, other: Tree) -> bool:
    """Whether two formulas have the same real values wherever both have one, at points with positive variables: they
    may be equal on the domain that a question states."""
    return _agreements(first, other, range(_POINTS)) > 1


def agree_where_small(first: Tree, other: Tree) -> bool:
    """Whether two formulas have the same values at points whose variables are between 0 and 1, where inverse functions
    are on their first branch."""
    return _agreements(first, other, _SMALL_POINTS) > 2


def agree_on_whole_numbers(first: Tree, other: Tree) -> bool:
    """Whether two formulas have the same values where all variables are whole numbers, as in `(-1)^{2n}` and 1."""
    return _agreements(first, other, _WHOLE_POINTS) > 2


def _agreements(first: Tree, other: Tree, points: Iterable[int]) -> int:
    """At how many points two formulas have the same value; 0 if they differ at one."""
    count = 0
    for point in points:
        try:
            (a, error), (b, other_error) = estimate(first, point), estimate(other, point)
        except (NoEstimateError, ArithmeticError, ValueError):
            continue
        if abs(a - b) > error + other_error + 1e-9 * max(abs(a), abs(b)):
            return 0
        count += 1
    return count


def differ_by_a_constant(first: Tree, other: Tree) -> bool:
    """Whether the difference of two formulas is the same wherever both have a value."""
    differences: list[Estimate] = []
    for point in range(_POINTS):
        with suppress(NoEstimateError, ArithmeticError, ValueError):
            (a, error), (b, other_error) = estimate(first, point), estimate(other, point)
            differences.append((a - b, error + other_error + 1e-9 * max(abs(a), abs(b))))
    if len(differences) < 2:
        return False
    return max(size - error for size, error in differences) <= min(size + error for size, error in differences)


_WHOLE_POINTS = (101, 102, 103, 104, 105)
"""At these, each variable is a whole number."""
_SMALL_POINTS = (201, 202, 203, 204, 205)
"""At these, each variable is between 0 and 1."""


def value_of(tree: Tree) -> float | None:
    """The value of a constant, or infinity; None if it has none here, or is no constant."""
    if names(tree):
        return None
    if tree in (("oo",), ("*", ("number", Fraction(-1), False), ("oo",))):
        return math.inf if tree == ("oo",) else -math.inf
    try:
        return estimate(tree)[0]
    except (NoEstimateError, ArithmeticError, ValueError):
        return None


def estimate(tree: Tree, point: int = 0) -> Estimate:
    """The value of a formula at a point. Raises NoEstimateError, ArithmeticError or ValueError where there is none."""
    head, *parts = tree
    if head == "number":
        return _rounded(float(tree[1]))
    if head == "name" and point in _WHOLE_POINTS:
        return _rounded(float(1 + (zlib.crc32(tree[1].encode()) + point) % 7))
    if head == "name" and point in _SMALL_POINTS:
        return _rounded((1 + zlib.crc32(f"{point} {tree[1]}".encode())) / (2**32 + 2))
    if head == "name":
        return _rounded(_SMALLEST * (_LARGEST_NAME / _SMALLEST) ** (zlib.crc32(f"{point} {tree[1]}".encode()) / 2**32))
    if head in ("pi", "e"):
        return _rounded(math.pi if head == "pi" else math.e)
    if head not in _OPERATIONS:
        raise NoEstimateError(head)
    value, error = _OPERATIONS[head](*(estimate(part, point) for part in parts))
    if not abs(value) < _LARGEST or not error < _LARGEST:
        raise NoEstimateError(head)
    return value, error + abs(value) * _ROUNDING


def _rounded(value: float) -> Estimate:
    return value, abs(value) * _ROUNDING


def _sum(*terms: Estimate) -> Estimate:
    largest = sum(abs(value) for value, _ in terms)
    return sum(value for value, _ in terms), sum(error for _, error in terms) + largest * _ROUNDING


def _product(*factors: Estimate) -> Estimate:
    value, error = 1.0, 0.0
    for factor, its_error in factors:
        value, error = value * factor, abs(value) * its_error + abs(factor) * error + error * its_error
    return value, error


def _power(base: Estimate, exponent: Estimate) -> Estimate:
    (value, error), (power, power_error) = base, exponent
    if power == round(power) and power_error <= 8 * abs(power) * _ROUNDING and value:
        if power > 0:
            return value**power, 2 * ((abs(value) + error) ** power - abs(value) ** power)
        share = error / (abs(value) - error) if abs(value) > error else math.inf
        return value**power, abs(value**power) * (math.expm1(min(abs(power) * share * 2, 700)))
    if value - error <= 0:
        raise NoEstimateError
    size = abs(power) * error / (value - error) + abs(math.log(value)) * power_error
    return value**power, value**power * math.expm1(min(2 * size + _ROUNDING, 700))


def _smooth(function: Callable[[float], float], slope: Callable[[float], float]) -> Callable[[Estimate], Estimate]:
    """A function of one number whose slope is bounded near it."""

    def bounded(argument: Estimate) -> Estimate:
        value, error = argument
        return function(value), 2 * error * slope(value) + _ROUNDING

    return bounded


def _quotient(top: Callable[[float], float], bottom: Callable[[float], float]) -> Callable[[Estimate], Estimate]:
    def bounded(argument: Estimate) -> Estimate:
        value, error = argument
        under = bottom(value)
        if abs(under) < 1e-3 + 2 * error:
            raise NoEstimateError
        return top(value) / under, 4 * (error + _ROUNDING) / under**2

    return bounded


def _logarithm(argument: Estimate, base: Estimate = (math.e, 0.0)) -> Estimate:
    logarithms = []
    for value, error in (argument, base):
        if value - 2 * error <= 0:
            raise NoEstimateError
        logarithms.append((math.log(value), 2 * error / value + _ROUNDING))
    (top, top_error), (bottom, bottom_error) = logarithms
    if abs(bottom) < 1e-3 + 2 * bottom_error:
        raise NoEstimateError
    return top / bottom, 2 * (top_error / abs(bottom) + abs(top) * bottom_error / bottom**2) + _ROUNDING


def _arc(function: Callable[[float], float]) -> Callable[[Estimate], Estimate]:
    """The inverse of a sine or a cosine, whose slope grows towards 1."""

    def bounded(argument: Estimate) -> Estimate:
        value, error = argument
        return function(value), 2 * error / math.sqrt(1 - min(abs(value) + 2 * error, 1) ** 2) + _ROUNDING

    return bounded


def _stepped(function: Callable[[float], int]) -> Callable[[Estimate], Estimate]:
    """A function that jumps at whole numbers. Near one, a value is taken for it."""

    def bounded(argument: Estimate) -> Estimate:
        value = argument[0]
        whole = round(value)
        return float(whole if abs(value - whole) <= argument[1] else function(value)), 0.0

    return bounded


def _binomial(top: Estimate, bottom: Estimate) -> Estimate:
    return _rounded(float(math.comb(_whole(top), _whole(bottom))))


def _factorial(argument: Estimate) -> Estimate:
    return _rounded(float(math.factorial(_whole(argument))))


def _whole(argument: Estimate) -> int:
    value = round(argument[0])
    if argument[0] != value or not 0 <= value < 60:
        raise NoEstimateError
    return value


_OPERATIONS: dict[str, Callable[..., Estimate]] = {
    "+": _sum,
    "*": _product,
    "^": _power,
    "abs": lambda argument: (abs(argument[0]), argument[1]),
    "degrees": lambda argument: _product(argument, (math.pi / 180, 1e-17)),
    "ln": _logarithm,
    "log": _logarithm,
    "sin": _smooth(math.sin, lambda value: 1.0),
    "cos": _smooth(math.cos, lambda value: 1.0),
    "arctan": _smooth(math.atan, lambda value: 1.0),
    "arcsin": _arc(math.asin),
    "arccos": _arc(math.acos),
    "floor": _stepped(math.floor),
    "ceil": _stepped(math.ceil),
    "sinh": _smooth(math.sinh, math.cosh),
    "cosh": _smooth(math.cosh, math.cosh),
    "tan": _quotient(math.sin, math.cos),
    "cot": _quotient(math.cos, math.sin),
    "sec": _quotient(lambda value: 1.0, math.cos),
    "csc": _quotient(lambda value: 1.0, math.sin),
    "binomial": _binomial,
    "factorial": _factorial,
}
assert _OPERATIONS.keys() >= TRIGONOMETRIC
