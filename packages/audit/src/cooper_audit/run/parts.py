"""The parts of a run: kinds of its problems, each with how its completions went, step after step."""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, nan
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from cooper_audit.run.change_points import FEWEST_PROBLEMS, FEWEST_STEPS, Series
from cooper_audit.run.kinds import Kind, Kinds, is_of_magnitude, number_in
from cooper_verify.rules.other_answers import stated_answers

NEAR = "near"
"""The column of a completion with its score under the nearest other reference, if the run asks for it."""
ACCEPTED = 0.5
MEASURES = {
    "gold": "gold accuracy",
    "rule": "rule accuracy",
    "magnitude": "states a number of the reference's magnitude",
    "near": "rejected under a near reference",
    "agreement": "agreement within groups",
    "score": "score of the reward model",
    "reward": "reward",
    "length": "length",
}
"""What is known of a part in a step, each the mean over its problems. `length` is in tokens, else in characters."""
PLACE = {name: place for place, name in enumerate(MEASURES)}
MOST_PARTS = 40
SMALLEST, LARGEST = 0.01, 0.95
"""The shares of a run's completions between which a kind is a part of it."""
SAME = 0.8
"""Two kinds that share this part of the problems of both are one part, under both names."""
ORDER = ("data set", "reference", "questions like", "size of the reference", "words of the question")
"""Attributes after those of `metadata`: of kinds that are one part, the first gives the name."""


@dataclass(frozen=True)
class Part:
    kinds: Sequence[Kind]
    """One kind, and others that hold of nearly the same problems."""
    share: float
    """Of the run's completions."""
    problems: int
    """Different ones."""
    rows: Bool[ndarray, " G"] = field(repr=False)
    """Whether each group of the run is of the part."""

    @property
    def name(self) -> str:
        return _named(self.kinds[0])

    @property
    def full_name(self) -> str:
        also = " and ".join(_named(kind) for kind in self.kinds[1:3])
        return f"{self.name} ({also})" if also else self.name


def _named(kind: Kind) -> str:
    attribute, value = kind
    return f"{attribute} “{value}”" if attribute == "questions like" else f"{attribute}: {value}"


class PartsRecord:
    """What a run's completions say of each kind of its problems. It holds some 50 bytes for a group of completions."""

    def __init__(self) -> None:
        self._kinds = Kinds()
        self._number_of: dict[Kind, int] = {}
        self._problems: dict[str, int] = {}
        self._kinds_of: list[Sequence[int]] = []
        self._steps, self._groups, self._completions = array("i"), array("i"), array("i")
        self._values = array("f")
        self.last = -1

    def add(self, step: int, groups: Sequence[Mapping[str, Any]]) -> None:
        """Add the recorded groups of a step, which is later than all before."""
        self.last = step
        texts = [str(row["text"]) for group in groups for row in group["completions"]]
        stated = iter(stated_answers(texts))
        for group in groups:
            if completions := group["completions"]:
                self._steps.append(step)
                self._groups.append(self._problem(group))
                self._completions.append(len(completions))
                answers = [next(stated) for _ in completions]
                self._values.extend(_measured(completions, answers, str(group.get("answer") or "")))

    def _problem(self, group: Mapping[str, Any]) -> int:
        key = str(group["problem"])
        if key not in self._problems:
            self._problems[key] = len(self._kinds_of)
            kinds = self._kinds.of(group)
            self._kinds_of.append(tuple(self._number_of.setdefault(kind, len(self._number_of)) for kind in kinds))
        return self._problems[key]

    def problems_of(self, kind: Kind) -> set[str]:
        """The ids of the problems of a kind."""
        number = self._number_of.get(kind)
        return {key for key, place in self._problems.items() if number in self._kinds_of[place]}

    def table(self) -> "PartsTable":
        """The record so far, for statistics."""
        completions, groups = np.array(self._completions), np.array(self._groups, dtype=int)
        values = np.array(self._values, dtype=float).reshape(-1, len(MEASURES))
        members = np.zeros((len(self._number_of), len(self._kinds_of)), dtype=bool)
        for problem, numbers in enumerate(self._kinds_of):
            members[list(numbers), problem] = True
        parts: list[Part] = []
        for kind, number in sorted(self._number_of.items(), key=lambda entry: _rank(entry[0])):
            problems = members[number]
            rows = problems[groups] if len(groups) else np.zeros(0, dtype=bool)
            share = float(completions[rows].sum() / max(1, completions.sum()))
            is_part = self._kinds.is_kind(kind) and SMALLEST <= share <= LARGEST and problems.sum() >= FEWEST_PROBLEMS
            if is_part and len(np.unique(np.array(self._steps)[rows])) >= FEWEST_STEPS:
                parts.append(Part([kind], share, int(problems.sum()), rows))
        return PartsTable(np.array(self._steps, dtype=int), values, _chosen(parts))


@dataclass(frozen=True)
class PartsTable:
    """Every group of a run in rows, and the parts that are large enough to be looked at."""

    steps: Int[ndarray, " G"]
    values: Float[ndarray, "G M"]
    """Of each group the `MEASURES`; NaN where there is none."""
    parts: Sequence[Part]

    def series(self, rows: Bool[ndarray, " G"], measure: str) -> Series:
        """A measure of these groups by step, weighted with the number of groups that have it."""
        column = self.values[:, PLACE[measure]]
        rows = rows & np.isfinite(column)
        places = self._places[rows]
        weights = np.bincount(places, minlength=len(self._by_step)).astype(float)
        sums = np.bincount(places, weights=column[rows], minlength=len(self._by_step))
        has = weights > 0
        steps = self._by_step[has]
        return Series(steps, sums[has] / weights[has], weights[has], steps)

    @cached_property
    def _by_step(self) -> Int[ndarray, " N"]:
        return np.unique(self.steps)

    @cached_property
    def _places(self) -> Int[ndarray, " G"]:
        return np.searchsorted(self._by_step, self.steps)


def _measured(rows: Sequence[Mapping[str, Any]], answers: Sequence[Sequence[str]], reference: str) -> list[float]:
    """The `MEASURES` of a group."""
    heard = [row["verdict"] == "correct" for row in rows if row["verdict"] not in ("silent", "timeout")]
    accepted = [row for row in rows if _number(row, "reward_model") > ACCEPTED]
    counts = Counter(map(tuple, answers))
    said = {stated: count for stated, count in counts.items() if stated}
    value = number_in(reference) if reference else None
    alike = sum(count for stated, count in said.items() if is_of_magnitude(stated, value)) if value is not None else 0
    paid = "reward_after" if "reward_after" in rows[0] else "reward"
    return [
        _mean([row["gold"] for row in rows if isinstance(row.get("gold"), bool)]),
        _mean(heard),
        alike / sum(said.values()) if said and value is not None else nan,
        _mean([near <= ACCEPTED for row in accepted if isfinite(near := _number(row, NEAR))]),
        max(counts.values()) / len(rows) if said else nan,
        _mean([_number(row, "reward_model") for row in rows]),
        _mean([_number(row, paid) for row in rows]),
        _mean([_number(row, "tokens") if "tokens" in row else len(row["text"]) for row in rows]),
    ]


def _number(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else nan


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if isfinite(value)]
    return sum(finite) / len(finite) if finite else nan


def _rank(kind: Kind) -> int:
    return ORDER.index(kind[0]) if kind[0] in ORDER else -1


def _chosen(parts: Sequence[Part]) -> list[Part]:
    """The largest parts, where kinds of nearly the same problems are one."""
    distinct: list[Part] = []
    for part in parts:
        for place, other in enumerate(distinct):
            if (part.rows & other.rows).sum() >= SAME * (part.rows | other.rows).sum():
                distinct[place] = Part([*other.kinds, *part.kinds], other.share, other.problems, other.rows)
                break
        else:
            distinct.append(part)
    return sorted(distinct, key=lambda part: -part.share)[:MOST_PARTS]
