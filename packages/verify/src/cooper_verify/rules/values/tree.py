"""Trees of formulas, and what can be told of them without computer algebra.

A tree is a tuple of a head and its arguments: `("number", Fraction, is_decimal)`, `("name", "x_1")`, `("pi",)`,
`("e",)`, `("oo",)`, `("+", a, b)`, `("*", a, b)`, `("^", base, exponent)`, `("degrees", a)`, `("+-", a)`, or the name
of a function with its arguments.
"""

from fractions import Fraction
from typing import Any

Tree = tuple[Any, ...]


def number(value: Fraction | int, is_decimal: bool = False) -> Tree:
    return ("number", Fraction(value), is_decimal)


def negative(tree: Tree) -> Tree:
    return number(-tree[1], tree[2]) if tree[0] == "number" else ("*", number(-1), tree)


def inverse(tree: Tree) -> Tree:
    return ("^", tree, number(-1))


OF_A_SET = ("min", "max", "gcd", "lcm")
"""Functions for which the order of the arguments does not count."""
_MOST_DIGITS_OF_A_POWER = 1200
MOST_BITS = 2**22
"""Of the numerator or denominator of a power or factorial that is computed: a million digits, a tenth of a second."""


def bits_of(value: Any) -> int:
    """Of the numerator or the denominator, the larger."""
    return max(abs(value.numerator), value.denominator).bit_length()


def constant(tree: Tree) -> Fraction | None:
    """The exact value of a tree of rational numbers and operations that keep them rational; None for all else."""
    head, *parts = tree
    if head == "number":
        return tree[1]
    if head not in ("+", "*", "^"):
        return None
    numbers: list[Fraction] = []
    for part in reversed(parts):  # a tower of powers is too large at its top
        if (value := constant(part)) is None:
            return None
        numbers.append(value)
    numbers.reverse()
    if head == "+":
        return sum(numbers, Fraction(0))
    if head == "*":
        product = Fraction(1)
        for value in numbers:
            product *= value
        return product
    base, exponent = numbers
    if (
        exponent.denominator != 1
        or bits_of(base) * abs(exponent) > 4 * _MOST_DIGITS_OF_A_POWER
        or (not base and exponent <= 0)
    ):
        return None
    return base ** int(exponent)


def is_beyond_computing(tree: Tree, bits: int = MOST_BITS) -> bool:
    """Whether a tree is a rational number whose numerator or denominator has more than `bits` bits for sure: a power of
    a rational number by a whole exponent, or a sum or product of one of these and constants. With the default, it is
    unequal to every `constant`."""
    head, *parts = tree
    if head not in ("+", "*", "^"):
        return False
    if head == "^":
        base, exponent = constant(parts[0]), constant(parts[1])
        if base is None or abs(base) in (0, 1):
            return False
        if exponent is None:
            return _is_whole(parts[1]) and is_beyond_computing(parts[1], bits=64)
        return exponent.denominator == 1 and abs(exponent) * (bits_of(base) - 1) > bits
    values = [constant(part) for part in parts]
    others = [value for value in values if value is not None]
    if len(others) != len(parts) - 1 or (head == "*" and 0 in others):
        return False
    # What the constants could cancel is less than what is left.
    return is_beyond_computing(parts[values.index(None)], bits + 2 * sum(map(bits_of, others)))


def _is_whole(tree: Tree) -> bool:
    """Whether a tree is a whole number for sure: a sum, product or power of such, without a negative exponent."""
    head, *parts = tree
    if (value := constant(tree)) is not None:
        return value.denominator == 1
    if head in ("+", "*"):
        return all(map(_is_whole, parts))
    return head == "^" and _is_whole(parts[0]) and _is_natural(parts[1])


def _is_natural(tree: Tree) -> bool:
    """Whether a tree is a whole number of 0 or more for sure."""
    if (value := constant(tree)) is not None:
        return value.denominator == 1 and value >= 0
    return tree[0] in ("+", "*", "^") and all(map(_is_natural, tree[1:]))


def names(tree: Tree) -> set[str]:
    """The names of the variables and functions in a tree."""
    if tree[0] == "name":
        return {tree[1]}
    found = {tree[1]} if tree[0] == "apply" else set()
    return found.union(*(names(part) for part in tree[1:] if isinstance(part, tuple)))


def heads(*trees: Tree) -> set[str]:
    """The heads of trees and of all their parts."""
    found, left = set[str](), [*trees]
    while left:
        tree = left.pop()
        found.add(tree[0])
        left += [part for part in tree[1:] if isinstance(part, tuple)]
    return found


def has(tree: Tree, head: str) -> bool:
    return tree[0] == head or any(has(part, head) for part in tree[1:] if isinstance(part, tuple))


def has_decimal(tree: Tree) -> bool:
    if tree[0] == "number":
        return tree[2]
    return any(has_decimal(part) for part in tree[1:] if isinstance(part, tuple))


def has_bare_logarithm(tree: Tree) -> bool:
    r"""Whether a tree has a `\log` without a base, which may be e or 10."""
    if tree[0] == "log" and len(tree) == 2:
        return True
    return any(has_bare_logarithm(part) for part in tree[1:] if isinstance(part, tuple))


def replaced(tree: Tree, old: Tree, new: Tree) -> Tree:
    """The tree with every part that is `old` replaced."""
    if tree == old:
        return new
    return (tree[0], *(replaced(part, old, new) if isinstance(part, tuple) else part for part in tree[1:]))


def canonical(tree: Tree) -> Tree:
    """The tree with flat, sorted sums and products and computed rational parts. Equal forms mean equal values."""
    value = constant(tree)
    if value is not None:
        return ("number", value, False)
    if tree[0] not in ("+", "*"):
        inner = [canonical(part) if isinstance(part, tuple) else part for part in tree[1:]]
        return (tree[0], *(sorted(inner, key=order) if tree[0] in OF_A_SET else inner))
    head, parts, total = tree[0], [], Fraction(tree[0] == "*")
    for part in map(canonical, tree[1:]):
        for item in part[1:] if part[0] == head else [part]:
            if item[0] != "number":
                parts.append(item)
            else:
                total = total * item[1] if head == "*" else total + item[1]
    if total != (head == "*"):
        parts.append(("number", total, False))
    parts.sort(key=order)
    return parts[0] if len(parts) == 1 else (head, *parts)


def order(tree: Tree) -> str:
    """A text by which trees are sorted, the same for equal trees. Numbers are hexadecimal: Python refuses to write one
    with more than 4,300 decimal digits."""
    if tree[0] == "number":
        return f"{tree[1].numerator:x}/{tree[1].denominator:x}"
    return f"({' '.join(order(part) if isinstance(part, tuple) else str(part) for part in tree)})"
