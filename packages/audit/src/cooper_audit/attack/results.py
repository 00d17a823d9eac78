"""What training against a grader, or on an attack, has found: the records that tables show."""

from dataclasses import dataclass
from pathlib import Path

from cooper_audit.attack.attack import AttackResult
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
class Repair:
    """Both attacks, of the model as it was and as it is now, on the problems that the repair did not see."""

    folder: Path
    steps: int
    problems: int
    """Problems of the repair."""
    learned: frozenset[str]
    """The patterns of the repair. No pattern of their families is among the others."""
    before: AttackResult
    after: AttackResult

    def share(self, result: AttackResult, right: bool, learned: bool) -> float:
        """The mean share that is accepted of the right or the wrong patterns, in the repair or kept apart from it."""
        means = [
            pattern.accepted.mean
            for pattern in result.patterns
            if pattern.right == right and (pattern.name in self.learned) == learned
        ]
        return sum(means) / len(means) if means else float("nan")
