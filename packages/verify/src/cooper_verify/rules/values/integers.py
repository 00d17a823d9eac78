r"""Sets of whole numbers by a condition: `\{n \in \mathbb{Z} : n \ge 3\}`, `-2 < n \le 4, n \in \mathbb{Z}`."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cooper_base.data.verdict import Verdict
from cooper_verify.rules.values.collection import Several
from cooper_verify.rules.values.estimate import value_of
from cooper_verify.rules.values.notation import SET_CLOSE, SET_OPEN
from cooper_verify.rules.values.region import Region, read_condition
from cooper_verify.rules.values.scalar import Scalar
from cooper_verify.rules.values.tree import constant

_MOST = 2000
"""Whole numbers between the ends of a condition that are looked at."""
_MEMBER = r"[a-zA-Z]\s?\u2208\s?\\mathbb\s?\{?\s?Z\s?\}?"
_SET = re.compile(rf"{SET_OPEN}\s?([a-zA-Z])\s?\u2208\s?\\mathbb\s?\{{?\s?Z\s?\}}?\s?[|:]\s?(.+){SET_CLOSE}")
_CONDITION = re.compile(rf"(.+?)(?:,|;|\sand\s)\s?({_MEMBER})|({_MEMBER})\s?(?:,|;|:|\sand\s)\s?(.+)")


@dataclass(frozen=True)
class Integers:
    """The whole numbers of a set of numbers."""

    region: Region


def read_integers(text: str) -> Integers | None:
    """The set that a text gives; None for all else."""
    if braced := _SET.fullmatch(text):
        name, condition = braced.groups()
    elif loose := _CONDITION.fullmatch(text):
        name, condition = (loose[2] or loose[3])[0], loose[1] or loose[4]
    else:
        return None
    region = read_condition(condition)
    return Integers(region) if region and region.name == name else None


def compare_integers(reference: Integers, answer: Integers) -> Verdict:
    numbers = _ends(reference, answer)
    if numbers is None:
        return "unparsed"
    return "correct" if _members(reference, numbers) == _members(answer, numbers) else "wrong"


def compare_with_list(one: Integers | Several, other: Integers | Several) -> Verdict:
    """The verdict on a condition and the numbers that meet it. An infinite set has no list."""
    integers, listed = (one, other) if isinstance(one, Integers) else (other, one)
    assert isinstance(integers, Integers)
    assert isinstance(listed, Several)
    numbers = _ends(integers)
    values = [_number(element[0]) for element in listed.elements]
    if numbers is None or None in values:
        return "unparsed"
    members = _members(integers, numbers)
    if members & {numbers.start, numbers.stop - 1}:
        return "wrong"
    return "correct" if members == {*values} and len(members) == len(values) else "wrong"


def _number(value: Any) -> Any:
    return constant(value.tree) if isinstance(value, Scalar) and not value.unit else None


def _ends(*sets: Integers) -> range | None:
    """The whole numbers from below all ends to above them; None if an end has no value or they are too many."""
    ends = [value_of(end) for one in sets for end in one.region.ends()]
    finite = [end for end in ends if end is not None and not math.isinf(end)]
    if None in ends or not finite or max(finite) - min(finite) > _MOST:
        return None
    return range(math.floor(min(finite)) - 1, math.ceil(max(finite)) + 2)


def _members(integers: Integers, numbers: range) -> set[int]:
    holds = _holds(integers.region)
    return {value for value in numbers if holds(value)}


def _holds(region: Region) -> Callable[[int], bool]:
    def inside(value: int, parts: Any) -> bool:
        return any(
            (low < value or (part.has_low and low == value)) and (value < high or (part.has_high and high == value))
            for part in parts
            for low, high in [(value_of(part.low), value_of(part.high))]
            if low is not None and high is not None
        )

    within = _holds(region.within) if region.within else lambda value: True
    return lambda value: inside(value, region.intervals) and not inside(value, region.without) and within(value)
