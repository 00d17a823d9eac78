"""A problem: the question for the policy and the reference for its answers."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Problem:
    """One question with its reference answer. `id` is unique within a data set and stable between runs.

    `solution` is a reference solution that ends in the answer. `metadata` holds the other fields of the row. `rule`
    names the rule that gives the verdicts: one configured in the run, or a kind; None is the run's default.
    """

    id: str
    question: str
    answer: str
    solution: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    rule: str | None = None


def location(problem: Problem) -> str:
    """Where the problem was read from, or its id if that is unknown."""
    return str(problem.metadata.get("location", problem.id))
