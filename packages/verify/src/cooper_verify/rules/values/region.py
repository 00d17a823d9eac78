r"""Sets of numbers: intervals, inequalities and their unions. `(1,3]`, `1 < x \le 3`, "x<1 or x>2", `x \ne 0`.

They are compared as sets of numbers: every end of either divides the line, and both must have the same parts of it,
in n log n for n ends.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from cooper_base.data.verdict import Verdict
from cooper_verify.rules.values.estimate import value_of
from cooper_verify.rules.values.formula import formula
from cooper_verify.rules.values.free_letters import WHOLE
from cooper_verify.rules.values.notation import SET_CLOSE, SET_OPEN, enclosed, split
from cooper_verify.rules.values.tree import Tree, canonical, has_decimal, names, negative, number

INFINITY: Tree = ("oo",)
MINUS_INFINITY: Tree = ("*", number(-1), INFINITY)
Same = Callable[[Tree, Tree], bool]


@dataclass(frozen=True)
class Interval:
    low: Tree
    high: Tree
    has_low: bool
    has_high: bool


@dataclass(frozen=True)
class Region:
    """A set of numbers: some intervals together, without others. `name` is the variable whose values they are."""

    intervals: tuple[Interval, ...]
    without: tuple[Interval, ...] = ()
    within: "Region | None" = None
    """Another region to which it is confined."""
    name: str | None = None

    def ends(self) -> list[Tree]:
        of_parts = [end for part in (*self.intervals, *self.without) for end in (part.low, part.high)]
        return of_parts + (self.within.ends() if self.within else [])

    def covered(self, place: Mapping[Tree, int], count: int) -> list[bool]:
        """Which of `count` positions of the line it has, where `place` gives the positions of its ends."""
        inside, outside = (_covered(parts, place, count) for parts in (self.intervals, self.without))
        within = self.within.covered(place, count) if self.within else [True] * count
        return [has and not taken and also for has, taken, also in zip(inside, outside, within, strict=True)]


def _covered(parts: Iterable[Interval], place: Mapping[Tree, int], count: int) -> list[bool]:
    changes = [0] * (count + 1)
    for part in parts:
        start, stop = place[part.low] + (not part.has_low), place[part.high] + part.has_high
        if start < stop:
            changes[start] += 1
            changes[stop] -= 1
    return [depth > 0 for depth in accumulate(changes[:count])]


REAL = Interval(MINUS_INFINITY, INFINITY, False, False)


def point(tree: Tree) -> Interval:
    return Interval(tree, tree, True, True)


def read_region(text: str) -> Region | None:
    r"""An interval, a union, or the rest of one: `(1,3]`, `(-\infty,1) \cup \{2\}`, `\mathbb{R} \setminus \{0\}`."""
    parts = split(text, "\u222a")
    if len(parts) > 1:
        return united(map(read_region, parts))
    parts = split(text, "\u2229")
    if len(parts) > 1:
        return together(map(read_region, parts))
    parts = split(text.replace(f"-{SET_OPEN}", f" - {SET_OPEN}"), "\u2216", " - ", "\\backslash")
    if len(parts) == 2:
        whole, taken = map(read_region, parts)
        if whole is None or taken is None or taken.within or taken.without:
            return None
        return replace(whole, without=whole.without + taken.intervals)
    if excepted := _ALL_EXCEPT.fullmatch(text):
        taken = read_region(f"{SET_OPEN}{excepted[1].replace('and', ',').replace('or', ',')}{SET_CLOSE}")
        return Region((REAL,), taken.intervals) if taken else None
    if text in (r"\mathbb{R}", r"\mathbf{R}", r"\Re") or _ALL_REALS.fullmatch(text):
        return Region((REAL,))
    outer = enclosed(text)
    if outer is None:
        return None
    opening, content, closing = outer
    if opening in (SET_OPEN, "{"):
        return _read_set(content)
    parts = split(content, ",", ";")
    if len(parts) != 2 or opening not in "([" or closing not in ")]":
        return None
    low, high = (formula(part.rstrip(" .")) for part in parts)
    if low is None or high is None or _is_backwards(low, high):
        return None
    if (opening == "[" and low == MINUS_INFINITY) or (closing == "]" and high == INFINITY):
        return None  # no number
    return Region((Interval(low, high, opening == "[", closing == "]"),))


_ALL_EXCEPT = re.compile(
    r"(?:\\text\{\s?)?[Aa]ll real (?:numbers|values)(?: of [a-z])?,? except(?: for)?\s?\}?"
    r"\s?(?:[a-z]\s?=\s?)?((?:[^a-z]|and|or)+?)\s?\}?"
)
_ALL_REALS = re.compile(r"(?:\\text\{\s?)?[Aa]ll real(?:s| numbers)\s?\}?")


def _is_backwards(low: Tree, high: Tree) -> bool:
    ends = value_of(low), value_of(high)
    return None not in ends and ends[0] > ends[1]  # pyright: ignore[reportOperatorIssue]


def _read_set(content: str) -> Region | None:
    r"""What stands in braces: points, or a condition as in `\{x \mid x < 3\}`."""
    for sign in ("|", ":"):
        parts = split(content, sign)
        if len(parts) == 2 and re.fullmatch(r"[a-zA-Z](?:\s?\u2208\s?\\mathbb\{R\})?", parts[0]):
            found = read_condition(parts[1])
            return replace(found, name=None) if found and found.name == parts[0][0] else None
    trees = [formula(part) for part in split(content, ",", ";")]
    return Region(tuple(point(tree) for tree in trees if tree)) if all(trees) else None


def read_condition(text: str) -> Region | None:
    """One or more conditions on a variable: `1 < x \\le 3`, "x > 1 and x < 3", "x < 1 or x > 2"."""
    alternatives = split(text, " or ")
    if len(alternatives) > 1:
        return united(map(read_condition, alternatives))
    parts = [part for part in split(text, " and ", ",", ";") if not _IS_REAL.fullmatch(part)]
    if len(parts) > 1:
        return together(map(read_condition, parts))
    text = parts[0] if parts else text
    return read_inequality(text)


_IS_REAL = re.compile(r"[A-Za-z]\s?\u2208\s?\\mathbb\s?\{?\s?R\s?\}?")
_RELATION = re.compile(r"[<>\u2264\u2265\u2260]")
_NAME = re.compile(r"[A-Za-z](?:_(?:\w|\{\w{1,9}\}))?|\\[A-Za-z]+")


def read_inequality(text: str) -> Region | None:
    """The values of a variable that stands alone between its bounds: `1 < x \\le 3`, `x \\ge 2`, `x \\ne 0`."""
    signs, sides = _RELATION.findall(text), [side.strip() for side in _RELATION.split(text)]
    if signs and set(signs) <= {">", "\u2265"}:
        signs = [{">": "<", "\u2265": "\u2264"}[sign] for sign in reversed(signs)]
        sides.reverse()
    trees = [formula(side) for side in sides]
    places = [place for place, tree in enumerate(trees) if tree and tree[0] == "name" and _NAME.fullmatch(sides[place])]
    if len(trees) == 2 and len(signs) == 1 and (region := _of_absolute_value(signs[0], *trees)):
        return region
    if None in trees or len(places) != 1:
        return None
    place, name = places[0], trees[places[0]][1]  # pyright: ignore[reportOptionalSubscript]
    bounds: list[Tree] = [tree for i, tree in enumerate(trees) if tree and i != place]
    if any(name in names(bound) for bound in bounds) or len(sides) > 3 or (len(sides) == 3 and place != 1):
        return None
    if signs == ["\u2260"]:
        return Region((REAL,), (point(bounds[0]),), name=name)
    if not set(signs) <= {"<", "\u2264"}:
        return None
    low, high = MINUS_INFINITY, INFINITY
    if place > 0:
        low = bounds[0]
    if place < len(sides) - 1:
        high = bounds[-1]
    closed = [sign == "\u2264" for sign in signs]
    return Region((Interval(low, high, place > 0 and closed[0], place < len(sides) - 1 and closed[-1]),), name=name)


def _of_absolute_value(sign: str, low: Tree | None, high: Tree | None) -> Region | None:
    """`|x| < 3` and `|x| > 3`."""
    is_inside = high is not None and high[0] != "abs"
    absolute, bound = (low, high) if is_inside else (high, low)
    if absolute is None or bound is None or absolute[0] != "abs" or absolute[1][0] != "name" or names(bound):
        return None
    size = value_of(bound)
    if size is None or not 0 < size < math.inf or sign not in "<\u2264":
        return None
    inside = Interval(negative(bound), bound, is_closed := sign == "\u2264", is_closed)
    outside = replace(inside, has_low=not is_closed, has_high=not is_closed)
    return Region((inside,) if is_inside else (REAL,), () if is_inside else (outside,), name=absolute[1][1])


def read_member(name: str, of: Sequence[str]) -> Region | None:
    r"""`x \in [1, 3]`, split at its sign."""
    region = read_region(of[0]) if len(of) == 1 and _NAME.fullmatch(name) else None
    return replace(region, name=name) if region else None


def united(parts: Iterable[Region | None]) -> Region | None:
    regions = [*parts]
    if None in regions or any(region.without or region.within for region in regions if region):
        return None
    name = _common_name(regions)
    return None if name is False else Region(sum((region.intervals for region in regions if region), ()), name=name)  # pyright: ignore


def together(parts: Iterable[Region | None]) -> Region | None:
    """The numbers that all regions have."""
    regions = [*parts]
    name = _common_name(regions) if None not in regions else False
    if name is False:
        return None
    whole: Region | None = None
    for region in regions:
        assert region is not None
        if region.within is not None:
            return None
        whole = replace(region, within=whole, name=name)  # pyright: ignore
    return whole


def _common_name(regions: Sequence[Region | None]) -> str | bool | None:
    found = {region.name for region in regions if region}
    return found.pop() if len(found) == 1 else False


def compare_regions(reference: Region, answer: Region, same: Same) -> Verdict:
    """The verdict on a set of numbers. The variable may have another name only where one side has none."""
    if reference.name and answer.name and reference.name != answer.name:
        return "unparsed"
    ends = {*reference.ends(), *answer.ends()}
    values = {end: value_of(end) for end in ends}
    if None in values.values():
        return _compare_intervals(reference, answer, same)
    place: dict[Tree, int] = {}
    finite, last = [], None
    for end in sorted(ends, key=lambda end: (values[end], repr(end))):  # pyright: ignore
        if last is None or not same(last, end):
            finite.append(not math.isinf(values[end]))  # pyright: ignore
        place[end] = 2 * len(finite) - 1
        last = end
    count = 2 * len(finite) + 1
    sides = zip(reference.covered(place, count), answer.covered(place, count), strict=True)
    alike = all(one == other for p, (one, other) in enumerate(sides) if p % 2 == 0 or finite[p // 2])
    return "correct" if alike else "unparsed" if _may_be_rounded(reference, answer) else "wrong"


_ROUNDED = 0.001


def _may_be_rounded(reference: Region, answer: Region) -> bool:
    """Whether the ends of one are those of the other with decimals."""
    ends = [region.ends() for region in (reference, answer)]
    if len(ends[0]) != len(ends[1]) or not any(map(has_decimal, (*ends[0], *ends[1]))):
        return False
    sizes = [[value_of(end) for end in side] for side in ends]
    pairs = zip(*sizes, strict=True)
    return all(
        one is not None and other is not None and math.isclose(one, other, rel_tol=_ROUNDED) for one, other in pairs
    )


_MOST_PAIRS = 900
"""Comparisons of intervals that are not written alike."""


def _written(interval: Interval) -> tuple[Tree, Tree, bool, bool]:
    return canonical(interval.low), canonical(interval.high), interval.has_low, interval.has_high


def _compare_intervals(reference: Region, answer: Region, same: Same) -> Verdict:
    """The verdict on intervals whose ends have variables: each must have its like."""
    if any(region.without or region.within for region in (reference, answer)):
        return "unparsed"
    variables = [set().union(*map(names, region.ends())) for region in (reference, answer)]
    if variables[0] != variables[1]:
        return "unparsed"

    def alike(one: Interval, other: Interval) -> bool:
        closed = (one.has_low, one.has_high) == (other.has_low, other.has_high)
        return closed and same(one.low, other.low) and same(one.high, other.high)

    written = {_written(other) for other in answer.intervals}
    others = [one for one in reference.intervals if _written(one) not in written]
    if len(others) * len(answer.intervals) > _MOST_PAIRS:
        return "unparsed"
    matched = all(any(alike(one, other) for other in answer.intervals) for one in others)
    if matched and len(reference.intervals) == len(answer.intervals):
        return "correct"
    return "unparsed" if WHOLE in variables[0] else "wrong"  # the same intervals, counted from another one on
