"""Texts that make a regular expression slow, generated from its parse tree, and a measure of how it slows down.

A pattern backtracks on a text that repeats what one of its loops matches and then lacks what must follow. It is also
slow if every position of a long text begins a match that fails far on, so what leads to a loop is repeated as well.
"""

import re
import time
from collections.abc import Callable, Iterator
from itertools import product
from re import _constants as sre  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any

_LOOPS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_FIXED = (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY, sre.GROUPREF)
"""What matches in one way only."""
_LONG = 16
"""Repetitions from which a bounded loop counts as a loop."""
_UNIVERSE = [*map(chr, range(9, 14)), *map(chr, range(32, 127)), "\x00", "\xa0", "\xe9", "\u2019", "\u2600", "\u4e00"]
_MOST_CHARACTERS = 14
_MOST_STARTS = 6
_MOST_SAMPLES = 16
_SHORT = (12, 18, 24, 32, 40)
"""Lengths at which an exponential pattern is slow already."""
_SHORT_S = 0.003
_SIZES = (1500, 6000)
_SLOW_S = 0.0002
"""What the shorter of these texts may cost without a closer look: quadratic work on it takes 0.4 to 5 ms, by processor
and pattern."""
_MOST_GROWTH = 9.0
"""Of the time from one size to the next: linear work grows by 4, quadratic by 16."""

Search = Callable[[str], Any]


def endless_text(pattern: str, flags: int, search: Search) -> str | None:
    """A generated text of a few dozen characters that `search` takes exponential time on; None without one."""
    for pump in dict.fromkeys(pumps(pattern, flags)):
        for size in _SHORT:
            if _seconds(search, _pumped(pump, size)) > _SHORT_S and _least(search, _pumped(pump, size)) > _SHORT_S:
                return "{!r} + {!r} * n + {!r}".format(*pump)
    return None


def slow_text(pattern: str, flags: int, search: Search) -> str | None:
    """A generated text that `search` takes more than linear time on; None without one. For a pattern that has no
    `endless_text`: it would never return from a longer one."""
    for pump in dict.fromkeys(pumps(pattern, flags)):
        if _seconds(search, _pumped(pump, _SIZES[0])) > _SLOW_S and all(_grows(search, pump) for _ in range(3)):
            return "{!r} + {!r} * n + {!r}".format(*pump)
    return None


def _grows(search: Search, pump: tuple[str, str, str]) -> bool:
    """Whether a longer text takes more than linear time. On a busy machine one look may say so of any pattern."""
    small, large = (_least(search, _pumped(pump, size)) for size in _SIZES)
    return small > _SLOW_S and large / small > _MOST_GROWTH


def possessive_groups(pattern: str, flags: int) -> int:
    """How many possessive loops of a pattern repeat what may match in several ways. Python before 3.11.5 forgets the
    other ways and misses matches (CPython's issue 106052); `(?>(?:...)*)` means the same in every version."""

    def count(nodes: list) -> int:
        here = sum(
            operator is sre.POSSESSIVE_REPEAT and (len(argument[2]) != 1 or argument[2][0][0] not in _FIXED)
            for operator, argument in nodes
        )
        return here + sum(count(inside) for node in nodes for inside in _inside(*node))

    return count(list(parser.parse(pattern, flags)))


def _pumped(pump: tuple[str, str, str], size: int) -> str:
    before, body, end = pump
    return before + body * (size // len(body) + 1) + end


def pumps(pattern: str, flags: int) -> Iterator[tuple[str, str, str]]:
    """What comes before the repeated text, that text, and what comes after."""
    tree = parser.parse(pattern, flags)
    ways = list(dict.fromkeys(_loops(list(tree), "")))
    if not ways:
        return
    characters = _characters(pattern, flags)
    insides = list(dict.fromkeys(inside for _, inside in ways))
    led = list(dict.fromkeys(text for before, inside in ways for text in (before, before + inside) if text))
    starts = list(dict.fromkeys(["", *(before for before, _ in ways)]))[:_MOST_STARTS]
    ends = ["", "\x00", "\n~", *characters]
    yield from product(starts, [*characters, *insides], ends)
    yield from product([""], led, ["", "\x00"])
    yield from product(
        starts[:2], [one + other for one, other in product(characters, repeat=2) if one != other], ["\x00"]
    )


def _least(search: Search, text: str) -> float:
    """The least CPU time of three: whatever else the machine does can only add to it."""
    return min(_seconds(search, text) for _ in range(3))


def _seconds(search: Search, text: str) -> float:
    start = time.thread_time()
    search(text)
    return time.thread_time() - start


def _characters(pattern: str, flags: int) -> list[str]:
    """A character for every way in which the pattern's sets can divide the characters."""
    sets = [re.compile(one, flags & ~re.VERBOSE) for one in _sets(list(parser.parse(pattern, flags)))]
    of_kind: dict[tuple[bool, ...], str] = {}
    for character in _UNIVERSE:
        of_kind.setdefault(tuple(bool(one.fullmatch(character)) for one in sets), character)
    kinds = sorted(of_kind.items(), key=lambda kind: -sum(kind[0]))
    return list(dict.fromkeys(["\n", " ", *(character for _, character in kinds)]))[:_MOST_CHARACTERS]


def _sets(nodes: list) -> list[str]:
    """The pattern's single characters and sets, as patterns."""
    found: list[str] = []
    for operator, argument in nodes:
        if operator is sre.LITERAL:
            found.append(re.escape(chr(argument)))
        elif operator is sre.NOT_LITERAL:
            found.append(f"[^{re.escape(chr(argument))}]")
        elif operator is sre.IN:
            found.append(_set(argument))
        for inner in _inside(operator, argument):
            found += _sets(inner)
    return list(dict.fromkeys(found))


_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}


def _set(items: list) -> str:
    parts = []
    for operator, argument in items:
        if operator is sre.NEGATE:
            parts.append("^")
        elif operator is sre.LITERAL:
            parts.append(re.escape(chr(argument)))
        elif operator is sre.RANGE:
            parts.append("-".join(re.escape(chr(one)) for one in argument))
        else:
            parts.append(_CATEGORIES[argument])
    return f"[{''.join(parts)}]"


def _inside(operator: Any, argument: Any) -> list[list]:
    """The sequences inside a node of the tree."""
    if operator in _LOOPS:
        return [list(argument[2])]
    if operator is sre.BRANCH:
        return [list(one) for one in argument[1]]
    if operator is sre.SUBPATTERN:
        return [list(argument[3])]
    if operator is sre.ATOMIC_GROUP:
        return [list(argument)]
    if operator in (sre.ASSERT, sre.ASSERT_NOT):
        return [list(argument[1])]
    return []


def _loops(nodes: list, before: str) -> Iterator[tuple[str, str]]:
    """For every loop, a text that leads to it and a text that it matches once."""
    for position, (operator, argument) in enumerate(nodes):
        if operator in _LOOPS and argument[1] >= _LONG:
            yield from ((before, sample) for sample in _samples(list(argument[2])) if sample)
        ahead = "" if operator is sre.ASSERT and argument[0] < 0 else before
        for inner in _inside(operator, argument):
            yield from _loops(inner, ahead)
        before += _samples(nodes[position : position + 1])[0]


def _samples(nodes: list) -> list[str]:
    """A few texts that a sequence matches, among them one for each branch at its top."""
    found = [""]
    for operator, argument in nodes:
        here = _sample(operator, argument)
        found = [one + other for one, other in product(found, here)][:_MOST_SAMPLES]
    return found


def _sample(operator: Any, argument: Any) -> list[str]:
    if operator is sre.LITERAL:
        return [chr(argument)]
    if operator in (sre.NOT_LITERAL, sre.IN, sre.ANY):
        pattern = re.compile("." if operator is sre.ANY else _sets([(operator, argument)])[0])
        return [next((one for one in "a1 b" + "".join(_UNIVERSE) if pattern.fullmatch(one)), "\u2600")]
    if operator in _LOOPS:
        some = [sample * max(argument[0], 1) for sample in _samples(list(argument[2]))]
        return some if argument[0] else [some[0], "", *some[1:]]
    if operator is sre.BRANCH:
        return [sample for branch in argument[1] for sample in _samples(list(branch))[:4]][:_MOST_SAMPLES]
    if operator in (sre.SUBPATTERN, sre.ATOMIC_GROUP):
        return _samples(_inside(operator, argument)[0])
    return [""]
