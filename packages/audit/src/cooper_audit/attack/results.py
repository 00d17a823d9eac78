"""What training against a grader, or on an attack, has found: the records that tables show."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cooper_audit.attack.attack import PLAIN_WRONG, AttackResult, accepted_patterns
from cooper_audit.statistics import Estimate, paired_difference
from cooper_base.data.problem import Problem

REPAIR_STEPS = 60
"""Updates of a repair by default."""


@dataclass(frozen=True)
class FoundCompletion:
    """A completion of the policy that the reward accepts and the rule does not."""

    step: int
    problem: Problem
    text: str
    reward: float
    kind: str


@dataclass(frozen=True)
class Finding:
    """What the policy found of one kind."""

    kind: str
    count: int
    share_of_last: float
    """The share of all completions of the run's last step."""
    first_step: int
    completions: list[FoundCompletion]
    """The different ones, the best paid first."""


@dataclass(frozen=True)
class Change:
    """What the repair changed of some patterns, on the problems that it did not see."""

    name: str
    right: bool
    learned: bool
    """Whether the patterns are in the repair."""
    before: float
    """The share that is accepted, as a mean over problems."""
    after: float
    difference: Estimate
    """`after` less `before`, paired by problem."""

    @property
    def risen(self) -> bool:
        """Whether more is accepted than before: the interval of the difference is above 0."""
        return self.difference.low > 0


@dataclass(frozen=True)
class Repair:
    """Both attacks, of the model as it was and as the repair leaves it, on the problems that the repair did not see.

    A repair after which a pattern of wrong answers is accepted more often than before is refused: nothing is written.
    """

    folder: Path
    steps: int
    problems: int
    """Problems of the repair."""
    learned: frozenset[str]
    """The patterns of the repair. No pattern of their families is among the others."""
    before: AttackResult
    after: AttackResult

    @cached_property
    def groups(self) -> list[Change]:
        """Wrong and right answers, each of the patterns in the repair and of those kept apart, where there are any."""
        changes = []
        for right in (False, True):
            for learned, words in ((True, "in the repair"), (False, "kept apart")):
                names = [pattern.name for pattern in self.before.patterns if pattern.right == right]
                names = [name for name in names if (name in self.learned) == learned]
                name = f"{'right' if right else 'wrong'}, {words}"
                changes += [self._change(name, right, learned, names)] if names else []
        return changes

    @cached_property
    def patterns(self) -> list[Change]:
        """Each pattern. Plain wrong answers come first, then the others by their rise."""
        changes = [
            self._change(pattern.name, pattern.right, pattern.name in self.learned, [pattern.name])
            for pattern in self.before.patterns
        ]
        return sorted(changes, key=lambda change: (change.name != PLAIN_WRONG, -change.difference.mean))

    @property
    def risen(self) -> list[Change]:
        """The patterns of wrong answers that are accepted more often than before, for which a repair is refused; where
        there is none, wrong answers of all patterns of a side, if these are."""
        wrong = [change for change in self.patterns if change.risen and not change.right]
        return wrong or [change for change in self.groups if change.risen and not change.right]

    def changes(self) -> dict[str, Any]:
        """Whether the repair is refused, and all changes, as JSON values."""
        changes = {"groups": self.groups, "changes": self.patterns}
        listed = {name: [asdict(change) for change in each] for name, each in changes.items()}
        return {"refused": bool(self.risen)} | listed

    def _change(self, name: str, right: bool, learned: bool, patterns: Collection[str]) -> Change:
        before, after = (
            {
                problem: float(np.mean([accepted[each] for each in patterns if each in accepted]))
                for problem, accepted in accepted_patterns(result.answers, result.accepts_above).items()
                if any(each in accepted for each in patterns)
            }
            for result in (self.before, self.after)
        )
        first, second = (np.array([side[problem] for problem in before]) for side in (before, after))
        difference = paired_difference(first, second)
        return Change(name, right, learned, float(first.mean()), float(second.mean()), difference)
