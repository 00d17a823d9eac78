r"""Several values: lists and sets (`1, 2`, "2 and 3", `\{1,3\}`), tuples, vectors, matrices and ratios (`3:4:5`).

A tuple has an order and a set has none. In a list without brackets the order does not count either, and a value that
occurs twice counts twice.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from cooper_base.data.verdict import Verdict
from cooper_verify.rules.values.expression import UnprovenError
from cooper_verify.rules.values.notation import SET_OPEN, enclosed, split
from cooper_verify.rules.values.scalar import Scalar, bare_name, read_scalar
from cooper_verify.rules.values.tree import Tree, canonical, constant, inverse, names, negative, number, replaced

Read = Callable[[str], Sequence[Any]]
"""The readings of a part of a text."""
Compare = Callable[[Sequence[Any], Sequence[Any]], Verdict]
"""The verdict on the readings of a part of an answer."""
Form = Literal["set", "list", "alternatives", "thousands"]
"""`thousands`: `1,200`, which may be one number."""
_MOST_PAIRS = 900
"""Comparisons of elements that are not written alike."""
_MOST = 300
"""Elements that are read."""


@dataclass(frozen=True)
class Several:
    """Values in no order. Each element is the readings of one part."""

    elements: tuple[Sequence[Any], ...]
    form: Form


@dataclass(frozen=True)
class Tuple:
    """Values in order, in brackets or in a column."""

    elements: tuple[Sequence[Any], ...]
    bracket: str


@dataclass(frozen=True)
class Matrix:
    rows: tuple[tuple[Sequence[Any], ...], ...]


@dataclass(frozen=True)
class Ratio:
    parts: tuple[Scalar, ...]


@dataclass(frozen=True)
class Division:
    """A division of whole numbers with what is left: `17 R 3`."""

    quotient: int
    rest: int


def items(text: str) -> list[str]:
    """The parts of a list, between commas, semicolons and "and"; a single part if it is no list."""
    parts = split(text, ",", ";", " and ", " & ")
    if len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [part for place, part in enumerate(parts) if part or not place]  # ", and" leaves an empty one


def read_list(parts: Sequence[str], read: Read, form: Form) -> Several | None:
    if len(parts) > _MOST or not all(parts):
        return None
    elements = tuple(read(part) for part in parts)
    return Several(elements, form) if all(elements) else None


_ENVIRONMENT = re.compile(
    r"(?P<opening>\[|\()?\s*\\begin\s*\{(?P<name>[pbB]?(?:small)?matrix|array)\*?\}(?:\{[clr|]*\})?(?P<content>.*)"
    r"\\end\s*\{(?P=name)\*?\}\s*(?(opening)[\])])",
    re.DOTALL,
)


_TRANSPOSED = re.compile(r"(?<=[)\]])\s?\^\s?\{?\s?(?:T|\\top|\\intercal|\\mathsf\s?\{?T\}?)\s?\}?\Z")
"""Behind a row in brackets: it is a column."""


def read_bracket(text: str, read: Read) -> list[Any]:
    """A tuple or a set in brackets, or a matrix."""
    if environment := _ENVIRONMENT.fullmatch(text):
        return _read_matrix(environment["content"], read)
    outer = enclosed(_TRANSPOSED.sub("", text))
    if outer is None:
        return []
    opening, content, closing = outer
    parts = items(content)
    if opening + closing in (SET_OPEN + "\u2984", "{}"):
        found = read_list(parts, read, "set")
        return [with_both_signs(found)] if found and content else []
    if len(parts) < 2 or opening + closing not in ("()", "[]", "\u27e8\u27e9"):
        return []
    if opening == "[" and any(
        part[0] == "[" and part[-1] == "]" and len(items(part[1:-1])) < 2 for part in parts if part
    ):
        return []  # a list in a list
    found = read_list(parts, read, "list")
    return [Tuple(found.elements, opening)] if found else []


def _read_matrix(content: str, read: Read) -> list[Any]:
    rows = [[cell.strip() for cell in row.split("&")] for row in content.split("\\\\") if row.strip()]
    cells = tuple(tuple(read(cell) for cell in row) for row in rows)
    if not cells or len({len(row) for row in cells}) > 1 or not all(all(row) for row in cells):
        return []
    found: list[Any] = [Matrix(cells)]
    if min(len(cells), len(cells[0])) == 1 and max(len(cells), len(cells[0])) > 1:
        found.append(Tuple(tuple(cell for row in cells for cell in row), "("))
    return found


_DETERMINANT = re.compile(r"\\begin\s*\{vmatrix\}(.*)\\end\s*\{vmatrix\}", re.DOTALL)
_LARGEST_DETERMINANT = 4
"""Rows of a determinant that is computed."""


def read_determinant(text: str) -> Scalar | None:
    """The value of a `vmatrix`; None for all else."""
    environment = _DETERMINANT.fullmatch(text)
    if environment is None:
        return None
    rows = [
        [read_scalar(cell.strip()) for cell in row.split("&")] for row in environment[1].split("\\\\") if row.strip()
    ]
    trees = [[cell.tree for cell in row if cell and not cell.unit] for row in rows]
    if not 0 < len(trees) <= _LARGEST_DETERMINANT or any(len(row) != len(trees) for row in (*trees, *rows)):
        return None
    return Scalar(text, _determinant(trees), False)


def _determinant(rows: Sequence[Sequence[Tree]]) -> Tree:
    """By the first row."""
    first, *others = rows
    if not others:
        return first[0]
    terms = []
    for column, cell in enumerate(first):
        minor = _determinant([[*row[:column], *row[column + 1 :]] for row in others])
        terms.append(("*", negative(cell) if column % 2 else cell, minor))
    return ("+", *terms)


_DIVISION = re.compile(
    r"(\d{1,20})[\s~]*(?:\\text(?:rm)?\s*\{|\\mathrm\s*\{)?\s*(?:[Rr]\.?|rem\.?|,?\s?(?:with\s)?(?:an?\s)?remainder(?:\sof)?)[\s~]*\}?[\s~]*(\d{1,20})"
)


def read_division(text: str) -> Division | None:
    division = _DIVISION.fullmatch(text)
    return Division(*map(int, division.groups())) if division else None


def read_ratio(text: str) -> Ratio | None:
    parts = split(text, ":")
    scalars = [read_scalar(part) for part in parts]
    if len(parts) < 2 or None in scalars:
        return None
    return Ratio(tuple(scalar for scalar in scalars if scalar))


def both_signs(scalar: Scalar) -> Several | None:
    r"""The two values of `3 \pm 2\sqrt{2}`; None for a value without the sign."""
    trees = _with_signs(scalar.tree)
    if len(trees) != 2:
        return None
    values = [replace(scalar, tree=tree, is_final=True) for tree in trees]
    return Several(tuple((value,) for value in values), "list")


def with_both_signs(several: Several) -> Several:
    r"""A list in which `\pm 1` is two elements."""
    values: list[Sequence[Any]] = []
    for element in several.elements:
        is_double = isinstance(element[0], Several) and element[0].form == "list"
        values += element[0].elements if is_double else [element]
    return replace(several, elements=tuple(values))


def _with_signs(tree: Tree) -> list[Tree]:
    def find(tree: Tree) -> list[Tree]:
        return [tree] * (tree[0] == "+-") + [
            found for part in tree[1:] if isinstance(part, tuple) for found in find(part)
        ]

    signs = find(tree)
    if len(signs) != 1:
        return []
    return [replaced(tree, signs[0], signs[0][1]), replaced(tree, signs[0], negative(signs[0][1]))]


def compare_in_order(reference: Sequence[Any], answer: Sequence[Any], compare: Compare) -> Verdict:
    """The verdict on elements one by one: all must be `correct`, and one that is `wrong` decides."""
    if len(reference) != len(answer):
        return "wrong"
    verdicts = {compare(one, other) for one, other in zip(reference, answer, strict=True)}
    return "correct" if verdicts <= {"correct"} else "wrong" if "wrong" in verdicts else "unparsed"


def compare_several(reference: Several, answer: Several, compare: Compare) -> Verdict:
    """The verdict on values in any order, with their repeats."""
    if _has_sets(reference) != _has_sets(answer):
        return "unparsed"  # {1}, {2} and {1, 2}
    missing, left = _unmatched(reference.elements, answer.elements, compare)
    if not missing and not left:
        return "unparsed" if {reference.form, answer.form} == {"set", "thousands"} else "correct"
    if not missing or not left:
        extra, others = (left, reference.elements) if left else (missing, answer.elements)
        repeats = all(any(compare(one, other) == "correct" for other in others) for one in extra)
        if repeats:
            return "unparsed"  # the same members, of which one is repeated
    pairs = [(one, other) for one in missing for other in left]
    return "wrong" if all(compare(one, other) == "wrong" for one, other in pairs) else "unparsed"


def _has_sets(several: Several) -> bool:
    return any(isinstance(element[0], Several) and element[0].form == "set" for element in several.elements)


def _unmatched(reference: Sequence[Any], answer: Sequence[Any], compare: Compare) -> tuple[list[Any], list[Any]]:
    """The elements of each side that the other lacks. Formulas that are written alike find each other at once."""
    by_figure: dict[Tree | None, list[int]] = {}
    for place, element in enumerate(answer):
        by_figure.setdefault(_figure(element), []).append(place)
    open_places, missing = set(range(len(answer))), []
    for element in reference:
        figure = _figure(element)
        if figure is not None and by_figure.get(figure):
            open_places.remove(by_figure[figure].pop())
        else:
            missing.append(element)
    if len(missing) * len(open_places) > _MOST_PAIRS:
        raise UnprovenError
    for element in [*missing]:
        place = next((i for i in sorted(open_places) if compare(element, answer[i]) == "correct"), None)
        if place is not None:
            open_places.remove(place)
            missing.remove(element)
    return missing, [answer[place] for place in sorted(open_places)]


def _figure(element: Sequence[Any]) -> Tree | None:
    """The tree of a value that is equal to every value with the same tree; None for all else."""
    value = element[0]
    if isinstance(value, Tuple) and value.bracket == "(":
        parts = [_figure(part) for part in value.elements]
        return None if None in parts else ("point", *parts)
    if not isinstance(value, Scalar) or value.unit or value.base or value.is_scaled or value.is_approximate:
        return None
    return canonical(value.tree)


def compare_tuples(reference: Tuple, answer: Tuple, compare: Compare) -> Verdict:
    if len(reference.elements) == 2 and {reference.bracket, answer.bracket} == {"(", "["}:
        return "unparsed"  # an open and a closed interval, if they are intervals
    return compare_in_order(reference.elements, answer.elements, compare)


_AXES = {"i": 0, "j": 1, "k": 2}


def compare_with_components(reference: Tuple | Scalar, answer: Tuple | Scalar, compare: Compare) -> Verdict:
    """The verdict on a vector in brackets and one as a sum along the axes: `(1, -2, 3)` and `i - 2j + 3k`."""
    vector, scalar = (reference, answer) if isinstance(reference, Tuple) else (answer, reference)
    assert isinstance(vector, Tuple)
    assert isinstance(scalar, Scalar)
    components = _components(scalar.tree, len(vector.elements))
    if components is None or scalar.unit:
        return "unparsed"
    return compare_in_order(vector.elements, [[_scalar(number(part))] for part in components], compare)


def _components(tree: Tree, size: int) -> list[Fraction] | None:
    """The factors of i, j and k in a sum of them; None for all else."""
    axes = {name: _AXES.get(bare_name(name), size) for name in names(tree)}
    if len(axes) < 2 or len({*axes.values()}) < len(axes) or max(axes.values()) >= size:
        return None

    def at(*point: int) -> Fraction | None:
        value = tree
        for name, axis in axes.items():
            value = replaced(value, ("name", name), number(point[axis]))
        return constant(canonical(value))

    units, elsewhere = [at(1, 0, 0), at(0, 1, 0), at(0, 0, 1)][:size], at(2, 3, 5)
    factors = [factor for factor in units if factor is not None]
    is_sum = elsewhere == sum((a * b for a, b in zip((2, 3, 5), factors, strict=False)), Fraction(0))
    return factors if len(factors) == len(units) and is_sum else None


def compare_matrices(reference: Matrix, answer: Matrix, compare: Compare) -> Verdict:
    if len(reference.rows) != len(answer.rows):
        return "wrong"
    return compare_in_order([*sum(reference.rows, ())], [*sum(answer.rows, ())], compare)


def compare_ratios(reference: Ratio, answer: Ratio, compare: Compare) -> Verdict:
    """The verdict on ratios, which are equal if all their parts are multiplied by the same number."""
    if len(reference.parts) != len(answer.parts):
        return "wrong"
    if any(len({part.unit for part in ratio.parts}) > 1 for ratio in (reference, answer)):
        return "unparsed"  # 1 cm : 50 km
    one, other = reference.parts[0].tree, answer.parts[0].tree
    products = [
        ([_scalar(("*", part.tree, other))], [_scalar(("*", second.tree, one))])
        for part, second in zip(reference.parts, answer.parts, strict=True)
    ]
    return compare_in_order([left for left, _ in products], [right for _, right in products], compare)


def quotient(ratio: Ratio) -> list[Scalar]:
    """The value of a ratio of two."""
    return [_scalar(("*", ratio.parts[0].tree, inverse(ratio.parts[1].tree)))] if len(ratio.parts) == 2 else []


def _scalar(tree: Tree) -> Scalar:
    return Scalar("", tree, True)


def compare_with_several(reference: Scalar | Several, answer: Scalar | Several, compare: Compare) -> Verdict:
    """One value against several of which one differs is `wrong`. The same value twice takes a reader."""
    several = reference if isinstance(reference, Several) else answer
    assert isinstance(several, Several)
    if not all(isinstance(reading, Scalar) for element in several.elements for reading in element[:1]):
        return "unparsed"
    if len(several.elements) == 1:
        single = several.elements[0]
        return compare(single, [answer]) if several is reference else compare([reference], single)
    single = answer if several is reference else reference
    if isinstance(single, Scalar) and _may_be_measured(single, several):
        return "unparsed"
    return "unparsed" if all(compare([single], element) == "correct" for element in several.elements) else "wrong"


def _may_be_measured(single: Scalar, several: Several) -> bool:
    r"""Whether a number lies within `5.0 \pm 0.1`, which may be a measured value and no pair."""
    ends = [element[0] for element in several.elements]
    if len(ends) != 2 or ends[0].text != ends[1].text:
        return False
    sizes = [constant(canonical(value.tree)) for value in (single, *ends)]
    return None not in sizes and sorted(sizes)[1] == sizes[0]  # pyright: ignore[reportArgumentType]
