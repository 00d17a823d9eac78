"""A problem: what the policy is asked and what the answer is checked against."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Problem:
    """One question with its reference answer.

    `id` is unique within a data set and stable between runs. `solution` is a reference solution text that
    ends in the answer, where the data set has one. `metadata` holds whatever else the row carried. `rule` names the
    rule that gives verdicts on it: one configured in the run, or a kind; None leaves it to the run's default.
    """

    id: str
    question: str
    answer: str
    solution: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    rule: str | None = None
