"""Which types of values compare, and how: everything else is `unparsed`."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from cooper_base.data.verdict import Verdict
from cooper_verify.rules.asked.names import is_function_of_name
from cooper_verify.rules.asked.question import asks_order, places_of
from cooper_verify.rules.asked.words import COMPARING, Words, may_name, speaks, unread
from cooper_verify.rules.values import collection, relation
from cooper_verify.rules.values.collection import Division, Matrix, Ratio, Several, Tuple
from cooper_verify.rules.values.congruence import Congruence, compare_congruences
from cooper_verify.rules.values.expression import Symbolic, UnprovenError, same
from cooper_verify.rules.values.free_letters import (
    MAY_BE_ANY,
    WHOLE,
    compare_turns,
    has_letter,
    has_other_constant,
    has_other_letter,
)
from cooper_verify.rules.values.integers import Integers, compare_integers, compare_with_list
from cooper_verify.rules.values.none import Empty
from cooper_verify.rules.values.piecewise import Piecewise, compare_piecewise
from cooper_verify.rules.values.region import Region, compare_regions
from cooper_verify.rules.values.relation import Chain, Equation, Named, System
from cooper_verify.rules.values.scalar import Scalar, compare_scalars
from cooper_verify.rules.values.tree import Tree, constant, names


class Comparison:
    """Compares values. Where only computer algebra can tell, `symbolic` says whether two formulas are equal, and
    `solutions` whether they have the same zeros."""

    def __init__(
        self, symbolic: Symbolic, solutions: Symbolic, expressions: bool = False, words: Words | None = None
    ) -> None:
        self.symbolic = symbolic
        self.solutions = solutions
        self.expressions = expressions
        self.words = words or Words()

    def __call__(self, reference: Sequence[Any], answer: Sequence[Any]) -> Verdict:
        """The verdict on the readings of an answer: `correct` if a pair of comparable readings is equal, `wrong` if
        such pairs differ."""
        verdicts: set[Verdict] = set()
        for one in reference:
            for other in answer:
                if compare := TABLE.get((type(one), type(other))):
                    try:
                        verdict = compare(self, one, other)
                    except UnprovenError:
                        verdict = "unparsed"
                    if verdict == "correct":
                        return "correct"
                    verdicts.add(verdict)
        return "wrong" if verdicts == {"wrong"} else "unparsed"

    def within(self, reference: Sequence[Any], answer: Sequence[Any]) -> Verdict:
        """The verdict on a part of an answer, in which a number may be a calculation."""
        return Comparison(self.symbolic, self.solutions, True, self.words)(reference, answer)

    def same(self, one: Tree, other: Tree) -> bool:
        return same(one, other, self.symbolic)


def _scalars(comparison: Comparison, one: Scalar, other: Scalar) -> Verdict:
    letters = (names(one.tree) | names(other.tree)) & MAY_BE_ANY
    if letters and not has_letter(comparison.words.question, letters):
        are_free = WHOLE in letters or comparison.words.question != ""
        if (turned := compare_turns(one.tree, other.tree, are_free, comparison.expressions)) is not None:
            return turned
        if has_other_constant(one.tree, other.tree, comparison.symbolic):
            return "correct"
    verdict = compare_scalars(one, other, comparison.symbolic, comparison.expressions)
    if verdict != "unparsed" and (unit := other.unit).words:
        value = constant(other.tree)
        may_be_one = (value is not None and abs(value) <= 1) or any(power < 0 for _, power in unit.powers)
        return verdict if comparison.words.know_unit(unit.words, may_be_one, bool(unit.names)) else "unparsed"
    return verdict


def _named(comparison: Comparison, one: Named, other: Named) -> Verdict:
    """Named values. In a function a constant may have another letter: `f(x) = cx`."""
    verdict = relation.compare_named(one, other, comparison)
    if verdict != "wrong" or not (one.parameters and other.parameters):
        return verdict
    trees = [value.tree for side in (one, other) for value in side.value[:1] if isinstance(value, Scalar)]
    is_letter = len(trees) == 2 and has_other_letter(trees[0], trees[1], comparison.words.question)
    return "unparsed" if is_letter else "wrong"


def _system_and_values(comparison: Comparison, one: Any, other: Any) -> Verdict:
    """Named values and bare ones: by the order of the names, unless the question asks for them in another one."""
    verdict = relation.compare_system_and_values(one, other, comparison.within)
    if verdict != "correct":
        return verdict
    system = next(side for side in (one, other) if isinstance(side, System))
    names_of_parts = [part.name for part in system.parts]
    if names_of_parts[0][0] == "(":
        return "unparsed"  # values of "(a)" and "(b)", and two values of one
    if isinstance(one if system is other else other, Tuple):
        names_of_parts = relation.in_usual_order(names_of_parts)
    if any(places_of([name], comparison.words.question) for name in names_of_parts):
        return "correct" if _are_asked_in_order(comparison, names_of_parts) else "unparsed"
    return "correct"


def _are_asked_in_order(comparison: Comparison, names_of_parts: Sequence[str]) -> bool:
    """Whether the question asks for all of these names, and in this order."""
    places = places_of([name.replace("\\var", "\\") for name in names_of_parts], comparison.words.question)
    return bool(places) and places == sorted(places)


def _several(comparison: Comparison, one: Several, other: Several) -> Verdict:
    """Values in any order, unless the question asks for one."""
    verdict = collection.compare_several(one, other, comparison.within)
    if verdict != "correct" or "list" not in (one.form, other.form) or not asks_order(comparison.words.question):
        return verdict
    is_ordered = collection.compare_in_order(one.elements, other.elements, comparison.within) == "correct"
    return "correct" if is_ordered else "unparsed"


def _by_parts(compare: Callable[..., Verdict]) -> Callable[..., Verdict]:
    return lambda comparison, one, other: compare(one, other, comparison.within)


def _as_quotient(comparison: Comparison, one: Any, other: Any) -> Verdict:
    """`5:8` is 5/8, and `1:30` may be the time of a quantity."""
    if any(isinstance(side, Scalar) and side.unit for side in (one, other)):
        return "unparsed"
    sides = [collection.quotient(side) if isinstance(side, Ratio) else [side] for side in (one, other)]
    return comparison.within(*sides)


def _without_name(comparison: Comparison, one: Any, other: Any) -> Verdict:
    """`x = 3` is 3."""
    named = one if isinstance(one, Named) else other
    if not _is_known(comparison, named.name):
        return "unparsed"
    if named is one and is_function_of_name(named.name):
        return "unparsed"  # a reference such as |x| = 3 is an equation
    sides_of_ratio = named.name.split(":")
    if len(sides_of_ratio) > 2 and comparison.words.question and not _are_asked_in_order(comparison, sides_of_ratio):
        return "unparsed"
    bare = other if named is one else one
    if isinstance(bare, Several | Tuple) and any(
        isinstance(reading, Named) and reading.name != named.name for element in bare.elements for reading in element
    ):
        return "unparsed"  # "x = 1 or y = 4" for "x = 1 or x = 4"
    sides = [side.value if isinstance(side, Named) else [side] for side in (one, other)]
    return comparison(*sides)


def _as_indexed(comparison: Comparison, one: Any, other: Any) -> Verdict:
    """`x_1 = 1, x_2 = 2` are the values of x: "x = 1 or x = 2"."""
    named, system = (one, other) if isinstance(one, Named) else (other, one)
    if named.parameters or any(part.name.partition("_")[0] != named.name for part in system.parts):
        return "unparsed"
    values = [Several(tuple(part.value for part in system.parts), "list")]
    return comparison(*((named.value, values) if named is one else (values, named.value)))


_LENGTH = re.compile(
    r"[|\s]*(?:\\over(?:line|rightarrow)\s*\{?\s*)?([A-Z])(?!\1)[A-Z][\s}|]*|[AKPSV]_\s*\{?\s*[A-Z]{3,4}\s*\}?|(?i:p(?:oh|h|k))"
)
"""The name of a length or an area, between or inside points, or of a measure: `AB`, `|AB|`, `S_{ABC}`, pH."""
_PAIR_WORDS = {"NO", "OR", "IF", "AN", "AS", "AT", "BY", "IN", "IS", "IT", "MY", "OF", "ON", "SO", "TO", "UP", "US"}


def _is_known(comparison: Comparison, name: str) -> bool:
    """Whether a name says nothing about its value: "the discarded value" may."""
    if _LENGTH.fullmatch(name) and re.sub(r"\\[a-z]+|[^A-Z]", "", name) not in _PAIR_WORDS:
        return True
    *before, symbol = name.split()
    if before and len(symbol) == 1 and not comparison.words.know(word for word in before if not may_name(word)):
        return False
    said = unread(name, is_subject=True)
    return comparison.words.know(said) and not any(speaks(word) or word in COMPARING for word in said)


def _solved(comparison: Comparison, one: Any, other: Any) -> Verdict:
    """`y = 2x + 1` may be the equation `2x - y + 1 = 0`."""
    sides = [relation.as_equation(side) if isinstance(side, Named) else side for side in (one, other)]
    if None in sides:
        return "unparsed"
    first, second = sides
    verdict = relation.compare_equations(first, second, comparison.solutions)  # pyright: ignore[reportArgumentType]
    return verdict if verdict == "correct" else "unparsed"


def _none_or_named(comparison: Comparison, one: Any, other: Any) -> Verdict:
    """Whatever its name, a value is not none: `x = 3`. That `A \\cup B = \\emptyset` may be another set."""
    verdict = comparison(*(side.value if isinstance(side, Named) else [side] for side in (one, other)))
    is_symbol = all(len(side.name) == 1 for side in (one, other) if isinstance(side, Named))
    return verdict if is_symbol or verdict == "wrong" else "unparsed"


def _none_or_number(comparison: Comparison, one: Any, other: Any) -> Verdict:
    none, value = (one, other) if isinstance(one, Empty) else (other, one)
    return "unparsed" if constant(value.tree) == 0 and not none.is_undefined else "wrong"  # "none" may count


TABLE: dict[tuple[type, type], Callable[..., Verdict]] = {
    (Scalar, Scalar): _scalars,
    (Scalar, Several): _by_parts(collection.compare_with_several),
    (Several, Several): _several,
    (Tuple, Tuple): _by_parts(collection.compare_tuples),
    (Tuple, Scalar): _by_parts(collection.compare_with_components),
    (Matrix, Matrix): _by_parts(collection.compare_matrices),
    (Division, Division): lambda comparison, one, other: "correct" if one == other else "wrong",
    (Ratio, Ratio): _by_parts(collection.compare_ratios),
    (Ratio, Scalar): _as_quotient,
    (Region, Region): lambda comparison, one, other: compare_regions(one, other, comparison.same),
    (Equation, Equation): lambda comparison, one, other: relation.compare_equations(one, other, comparison.solutions),
    (Named, Equation): _solved,
    (Named, System): _as_indexed,
    (Chain, Chain): lambda comparison, one, other: relation.compare_chains(one, other, comparison.same),
    (Named, Named): _named,
    (System, System): _by_parts(relation.compare_systems),
    (System, Several): _system_and_values,
    (System, Tuple): _system_and_values,
    (Piecewise, Piecewise): lambda comparison, one, other: compare_piecewise(
        one, other, comparison.within, comparison.same
    ),
    (Congruence, Congruence): lambda comparison, one, other: compare_congruences(one, other),
    (Integers, Integers): lambda comparison, one, other: compare_integers(one, other),
    (Integers, Several): lambda comparison, one, other: compare_with_list(one, other),
    (Empty, Empty): lambda comparison, one, other: "correct" if one == other else "unparsed",
    **{(Named, kind): _without_name for kind in (Scalar, Several, Tuple, Ratio, Region, Matrix, Piecewise)},
    (Empty, Scalar): _none_or_number,
    (Empty, Named): _none_or_named,
    **{(Empty, kind): lambda *sides: "wrong" for kind in (Several, Tuple, Region, System)},
}
TABLE |= {(other, one): compare for (one, other), compare in TABLE.items() if one is not other}
"""The comparison of a reference's type with an answer's. It is the same in both directions."""
