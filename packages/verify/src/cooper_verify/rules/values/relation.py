r"""Equations and what they name: `y = 2x+1`, `x = 3`, `f(x) = cx`, "x = 1, y = 2", `a < b`, `12 + 7 = 19`.

A single symbol on the left is a name and equals its value. `2x = 3` and `x + 1 = 3` are equations, and no numbers.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cooper_base.data.verdict import Verdict
from cooper_verify.rules.asked.names import is_function_of_name
from cooper_verify.rules.text.plain_text import TEXT_COMMAND
from cooper_verify.rules.values.collection import Compare, Read, Several, Tuple, compare_in_order, compare_several
from cooper_verify.rules.values.estimate import agree_where_positive, value_of
from cooper_verify.rules.values.formula import formula
from cooper_verify.rules.values.notation import enclosed, split
from cooper_verify.rules.values.scalar import Scalar, read_scalar
from cooper_verify.rules.values.tree import Tree, names, negative, replaced
from cooper_verify.rules.vocabulary.number_words import CHANGES_NUMBER


@dataclass(frozen=True)
class Named:
    """A value with its name: `x = 3`, or a function with its parameters: `f(x) = 2x`."""

    name: str
    parameters: tuple[str, ...]
    value: Sequence[Any]


@dataclass(frozen=True)
class System:
    """Values with different names: `x = 1, y = 2`."""

    parts: tuple[Named, ...]


@dataclass(frozen=True)
class Equation:
    left: Tree
    right: Tree


@dataclass(frozen=True)
class Chain:
    """Expressions in order of size: `a < b \\le c`."""

    signs: tuple[str, ...]
    trees: tuple[Tree, ...]


_INDEX = r"(?:_(?:\w|\{[^{}]{1,12}\}))?'*"
_SYMBOL = (
    rf"(?:[A-Za-z]{_INDEX}|\\mathbb\s?\{{[LS]\}}|p(?:OH|H|K(?:_\{{?[abw]\}}?)?)|\\Delta\s?[A-Za-z]{_INDEX}"
    rf"|\\(?!frac|sqrt|text|begin|math|left|log|ln|sin|cos|tan|not|neg|lnot|pm|mp)[A-Za-z]+{_INDEX})"
)
_LABEL = re.compile(
    rf"(?P<name>{_SYMBOL}|m?\s?\\(?:angle|triangle|overline|overrightarrow|vec|hat|bar|measuredangle)\s*(?:\{{\s*)?[A-Za-z]{{1,4}}\s*\}}?"
    rf"|[A-Z](?:\s?[\u2229\u222a]\s?[A-Z])+|\|?[A-Z]{{2,4}}\|?|{_SYMBOL}(?:\^\s*\{{\s*-1\s*\}})?\s*\((?P<arguments>[^()]{{1,40}})\))"
)
_SET_NAME = re.compile(r"\\mathbb\{([LS])\}")
"""The set of solutions: `\\mathbb{L}`."""
_D = r"(?:d|\\mathrm\s?\{\s?d\s?\})\s?"
_DERIVATIVE = re.compile(
    rf"(?:\\[dt]?frac\s?\{{)?\s?{_D}(?P<of>[A-Za-z])\s?(?:/|\}}\s?\{{)\s?{_D}(?P<by>[A-Za-z])\s?\}}?"
)
_WORDS = re.compile(r"[^\W\d_][^\W\d_'’.-]*(?:[ -][^\W\d_(][^\W\d_'’-]*\)?){0,11}")
_SHORT_NAMES = {"sum", "age", "gcd", "lcm", "hcf"}
_PLAIN_WORDS = re.compile(
    r"(?<=\d)\s*(?!x\b|times\b)[A-Za-z]+(?:[ /][A-Za-z]+){0,3}|\\?[$\u20ac\u00a3]|\\text\{[^{}\d]{1,30}\}"
)
_TIMES = re.compile(r"(?<=[\d)])\s?x\s?(?=[\d(])|(?<=\d)\stimes\s(?=\d)")
_CLOSE = 0.01
_FIGURES = re.compile(
    r"(?>(?:[\d\s.,+*/^(){}\u00d7\u00f7\u00b7-]"
    r"|\\(?:(?:[dt]?frac|cdot|times|div|sqrt|left|right)(?![A-Za-z])|[,;! ]))+)"
)


def read_equation(sides: Sequence[str], read: Read) -> list[Any]:
    """The readings of two or more sides between signs of equality."""
    if not all(sides):
        return []
    first, *others = sides
    names_of = label(first)
    if names_of is not None:
        name, parameters = names_of
        value = _last_of(others, read, is_defined=True)
        return [Named(name, parameters, value)] if value else []
    if len(parts := split(first, ":")) > 1 and all(map(label, parts)):
        value = read(others[-1]) if len(others) == 1 else []
        return [Named(":".join("".join(part.split()) for part in parts), (), value)] if value else []
    if (outer := enclosed(first)) and (tuple_of := _system(outer[1], others, read)):
        return [tuple_of]
    if len(sides) == 2 and (last := label(others[0])) and (value := read_scalar(first)) and not names(value.tree):
        return [Named(*last, [value])]
    if value := _last_of(sides, read, is_defined=False):
        return [*value]
    left, right = formula(first), formula(others[-1])
    if left and right and len(sides) == 2 and names(right) and agree_where_positive(left, right):
        return [Equation(left, right), *read(others[-1])]  # an identity: x^2-1 = (x-1)(x+1)
    if left is None or right is None or (len(sides) > 2 and not _last_of(others, read, is_defined=False)):
        return []
    return [Equation(left, right)]


def label(text: str) -> tuple[str, tuple[str, ...]] | None:
    """The name that a side of an equation is, and the parameters of a function; None for all else."""
    if found := _LABEL.fullmatch(text):
        name = _SET_NAME.sub(r"\1", "".join(text.split()))
        arguments = [part.strip() for part in (found["arguments"] or "").split(",")]
        if all(re.fullmatch(_SYMBOL, argument) for argument in arguments):
            return name.partition("(")[0], tuple(arguments)
        return name, ()
    if derivative := _DERIVATIVE.fullmatch(text):
        return f"{derivative['of']}'" if derivative["by"] == "x" else f"{derivative['of']}_{derivative['by']}'", ()
    if is_function_of_name(text):
        return text, ()
    words = TEXT_COMMAND.sub(r" \1 ", text).strip()
    if not _WORDS.fullmatch(words) or CHANGES_NUMBER.search(words):
        return None
    is_product = " " not in words and len(words) < 4 and "\\" not in text and words not in _SHORT_NAMES
    return None if is_product else (words.casefold(), ())


def _system(content: str, others: Sequence[str], read: Read) -> System | None:
    """`(x, y) = (1, 2)`."""
    labels = [label(part) for part in split(content, ",")]
    values = [value for value in read(others[0]) if isinstance(value, Tuple)] if len(others) == 1 else []
    if None in labels or len(labels) < 2 or not values or len(values[0].elements) != len(labels):
        return None
    pairs = zip(labels, values[0].elements, strict=True)
    return System(tuple(Named(*of_part, element) for of_part, element in pairs if of_part))


def _last_of(sides: Sequence[str], read: Read, is_defined: bool) -> Sequence[Any]:
    """The value of a calculation, which is its last side. All sides that are numbers must be equal. With `is_defined`,
    a formula of a named value may come first: `A = \\pi r^2 = 9\\pi`."""
    if len(sides) == 1:
        return read(sides[0])
    trees = [_calculated(side) for side in sides]
    if any(tree is None for tree in trees):
        return ()
    formulas = [tree for tree in trees[:-1] if tree and names(tree)]
    last = trees[-1]
    if last is None or (formulas and not is_defined):
        return ()
    if names(last):
        if len(formulas) < len(trees) - 1:
            return ()
    elif not _are_close([value_of(tree) for tree in trees if tree and not names(tree)]):
        return ()
    whole = [read_scalar(side) for side in sides]
    if whole[0] and whole[0].is_final and not (whole[-1] and whole[-1].is_final):
        return [whole[0]]  # 9 = 19 - 10
    return read(sides[-1])


def _are_close(sizes: Sequence[float | None]) -> bool:
    """Whether all sizes are about the last one. A side without a size (`1/0`, `\\pm 3`, `10^{400}`) is near none."""
    *others, last = sizes
    return last is not None and all(size is not None and math.isclose(size, last, rel_tol=_CLOSE) for size in others)


def contradicts(side: str, value: str) -> bool:
    """Whether a side of an equation is another number than its value, both in figures: 13 = 12. One with decimals or a
    division may be rounded."""
    if not (_FIGURES.fullmatch(side) and _FIGURES.fullmatch(value)):
        return False
    trees = _calculated(side.strip()), _calculated(value.strip())
    size, last = (value_of(tree) if tree else None for tree in trees)
    if size is None or last is None or math.inf in (abs(size), abs(last)):
        return False
    if size == int(size) and "." not in side:
        return size != last
    return not (math.isclose(size, last, rel_tol=_CLOSE) or (last == int(last) and abs(size - last) < 1))


def _calculated(side: str) -> Tree | None:
    """The tree of a side of a calculation, without the units of its numbers."""
    scalar = read_scalar(side)
    if scalar is not None and "+-" not in scalar.tree:
        return scalar.tree
    return formula(_PLAIN_WORDS.sub(" ", _TIMES.sub(" * ", side)))


_SIZES = re.compile(r"[<>\u2264\u2265]")


def read_chain(text: str) -> Chain | None:
    """Expressions between signs of size, the smallest first."""
    signs, sides = _SIZES.findall(text), _SIZES.split(text)
    if set(signs) <= {">", "\u2265"}:
        signs = [{">": "<", "\u2265": "\u2264"}[sign] for sign in reversed(signs)]
        sides.reverse()
    trees = [formula(side) for side in sides]
    if not signs or None in trees or not set(signs) <= {"<", "\u2264"}:
        return None
    return Chain(tuple(signs), tuple(tree for tree in trees if tree))


def compare_chains(reference: Chain, answer: Chain, same: Callable[[Tree, Tree], bool]) -> Verdict:
    """`correct` for the same expressions in the same order. Others may say the same in another way."""
    if reference.signs != answer.signs or not all(map(same, reference.trees, answer.trees)):
        return "unparsed"
    return "correct"


def compare_equations(reference: Equation, answer: Equation, same_solutions: Callable[[Tree, Tree], bool]) -> Verdict:
    """`correct` if one equation is a multiple of the other."""
    one, other = (("+", equation.left, negative(equation.right)) for equation in (reference, answer))
    if names(one) != names(other):
        return "wrong"
    return "correct" if same_solutions(one, other) else "wrong"


def as_equation(named: Named) -> Equation | None:
    """`y = 2x + 1` as an equation; None for the name of a function, or of a value without variables."""
    left, value = formula(named.name), named.value[0]
    if named.parameters or left is None or left[0] != "name" or not isinstance(value, Scalar) or not names(value.tree):
        return None
    return Equation(left, value.tree)


def compare_named(reference: Named, answer: Named, compare: Compare) -> Verdict:
    """The verdict on a value with a name. A function's parameters may have any names; a value's own name counts."""
    if len(reference.parameters) != len(answer.parameters):
        return _compare_graphs(reference, answer, compare)
    if not _are_one_name(reference.name, answer.name):
        return "unparsed"
    return compare(reference.value, _renamed(answer, reference.parameters))


def _are_one_name(one: str, other: str) -> bool:
    """Whether two names are of one value; `x_{1,2}` are the two values of x."""
    return one == other or one == f"{other}_{{1,2}}" or other == f"{one}_{{1,2}}"


def _compare_graphs(reference: Named, answer: Named, compare: Compare) -> Verdict:
    """The verdict on `f(x) = 2x` and `y = 2x`: the same function, or another function."""
    function, graph = (reference, answer) if reference.parameters else (answer, reference)
    is_graph = graph.name == "y" and len(function.parameters) == 1 and "y" not in function.parameters
    return compare(reference.value, answer.value) if is_graph else "unparsed"


def _renamed(function: Named, parameters: Sequence[str]) -> Sequence[Any]:
    """The value of a function with other names for its parameters."""
    if function.parameters == tuple(parameters):
        return function.value
    values = [value for value in function.value if isinstance(value, Scalar)]
    if any({*parameters} - {*function.parameters} & names(value.tree) for value in values):
        return ()  # f(y) = x^2 is no f(x)
    for place, (old, new) in enumerate(zip(function.parameters, parameters, strict=True)):
        values = [_with_name(value, _tree(old), ("name", f"#{place}")) for value in values]
        values = [_with_name(value, ("name", f"#{place}"), _tree(new)) for value in values]
    return values


def _tree(symbol: str) -> Tree:
    return formula(symbol) or ("name", symbol)


def _with_name(scalar: Scalar, old: Tree, new: Tree) -> Scalar:
    return replace(scalar, tree=replaced(scalar.tree, old, new))


def compare_systems(reference: System, answer: System, compare: Compare) -> Verdict:
    """The verdict on named values, by their names."""
    expected, found = ({part.name: part for part in system.parts} for system in (reference, answer))
    if expected.keys() != found.keys():
        return "unparsed"
    parts = [[part] for part in expected.values()]
    verdict = compare_in_order(parts, [[found[name]] for name in expected], compare)
    if verdict == "wrong" and len({name.partition("_")[0] for name in expected}) == 1:  # x_1 and x_2 may be exchanged
        one, other = (Several(tuple(part.value for part in system.parts), "list") for system in (reference, answer))
        return "unparsed" if compare_several(one, other, compare) == "correct" else verdict
    return verdict


_POLAR = ["r", "\\rho", "\\theta", "\\varphi", "\\phi", "z"]
"""Names of coordinates whose order is not that of the alphabet."""


def in_usual_order(order: Sequence[str]) -> list[str]:
    """The names of coordinates as a point has them."""
    return sorted(order, key=_POLAR.index if {*order} <= {*_POLAR} else None)


def compare_system_and_values(reference: Any, answer: Any, compare: Compare) -> Verdict:
    """The verdict where one side has no names: its values are in the order of the names, or it takes a reader."""
    system = reference if isinstance(reference, System) else answer
    if len({part.name.partition("_")[0] for part in system.parts}) == 1:  # x_1 and x_2
        values = Several(tuple(part.value for part in system.parts), "list")
        other = answer if system is reference else reference
        if isinstance(other, Several):
            return compare_several(*((values, other) if system is reference else (other, values)), compare)
    order = [part.name for part in system.parts]
    other = answer if system is reference else reference
    if isinstance(other, System) or (isinstance(other, Several) and other.form != "list"):
        return "unparsed"
    usual = in_usual_order(order)
    if order != usual and isinstance(other, Tuple):  # y = 3, x = 5 is the point (5, 3), if any
        inner = replace(system, parts=tuple(sorted(system.parts, key=lambda part: usual.index(part.name))))
        sides = (inner, other) if system is reference else (other, inner)
        return "correct" if compare_system_and_values(*sides, compare) == "correct" else "unparsed"
    bare = [part.value for part in system.parts]
    sides = (bare, other.elements) if system is reference else (other.elements, bare)
    verdict = compare_in_order(*sides, compare)
    if verdict != "wrong" or len(sides[0]) != len(sides[1]) or system is reference:
        return verdict
    left = list(sides[1])
    for element in sides[0]:
        place = next((i for i, found in enumerate(left) if compare(element, found) == "correct"), None)
        if place is not None:
            del left[place]
    return "wrong" if left else "unparsed"  # the same values in another order
