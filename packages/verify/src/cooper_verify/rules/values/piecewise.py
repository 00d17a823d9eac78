r"""Values by cases: `\begin{cases} x & \text{if } x > 0 \\ -x & \text{otherwise} \end{cases}`.

Cases with the same conditions are compared one by one, in any order. Conditions that are written otherwise may mean the
same: nobody can say then.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cooper_base.data.verdict import Verdict
from cooper_verify.rules.text.plain_text import bare_text
from cooper_verify.rules.values.collection import Compare, Read, compare_in_order
from cooper_verify.rules.values.formula import formula
from cooper_verify.rules.values.notation import CASES_CLOSE, CASES_OPEN
from cooper_verify.rules.values.region import Region, compare_regions, point, read_condition
from cooper_verify.rules.values.tree import Tree, names

_MOST = 20
"""Cases that are read."""
_LEAD = re.compile(r"(?i)\A(?:if|for|when|where|whenever)\b\s*")
_ELSE = re.compile(r"(?i)(?:otherwise|else|elsewhere|in all other cases)")
_WORDS = re.compile(r"(?:[^\W\d_]{2}|\\text)")


@dataclass(frozen=True)
class Piecewise:
    """Values with their conditions: a region, or words without layout."""

    cases: tuple[tuple[Sequence[Any], Region | str], ...]


def read_piecewise(text: str, read: Read) -> Piecewise | None:
    if not (text.startswith(CASES_OPEN) and text.endswith(CASES_CLOSE)):
        return None
    rows = [row.split("&") for row in text[1:-1].split("\\\\") if row.strip(" ,.;")]
    if not 1 < len(rows) <= _MOST or any(len(row) != 2 for row in rows):
        return None
    cases = [(read(value.strip(" ,.;")), _condition(condition.strip(" ,.;"))) for value, condition in rows]
    return Piecewise(tuple(cases)) if all(value and condition for value, condition in cases) else None


def _condition(text: str) -> Region | str:
    words = _LEAD.sub("", bare_text(text)).strip(" ,.;").replace("$", "")
    if _ELSE.fullmatch(words):
        return "otherwise"
    region = None if _WORDS.search(words) else read_condition(words) or _equality(words)
    return region or " ".join(words.split()).replace(" is ", " ")


def _equality(text: str) -> Region | None:
    """The only value of a variable: `x = 0`."""
    sides = [formula(side) for side in text.split("=")]
    if len(sides) != 2 or None in sides:
        return None
    name, value = sides if sides[0] and sides[0][0] == "name" else sides[::-1]
    if not name or not value or name[0] != "name" or names(value):
        return None
    return Region((point(value),), name=name[1])


def compare_piecewise(
    reference: Piecewise, answer: Piecewise, compare: Compare, same: Callable[[Tree, Tree], bool]
) -> Verdict:
    """The verdict on the values of the same conditions."""
    left, matched = [*answer.cases], []
    if len(left) != len(reference.cases):
        return "unparsed"
    for _, condition in reference.cases:
        place = next((place for place, (_, other) in enumerate(left) if _are_same(condition, other, same)), None)
        if place is None:
            return "unparsed"
        matched.append(left.pop(place)[0])
    return compare_in_order([value for value, _ in reference.cases], matched, compare)


def _are_same(one: Region | str, other: Region | str, same: Callable[[Tree, Tree], bool]) -> bool:
    if isinstance(one, Region) and isinstance(other, Region):
        return compare_regions(one, other, same) == "correct"
    return one == other
