"""A problem: the question for the policy and the reference for its answers."""

from dataclasses import dataclass, field
from typing import Any

from cooper_base.data.text import whole_characters


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
    messages: list[dict[str, str]] | None = None
    """The whole chat, each turn with `role` and `content`, if the data has it; `question` is then its last question."""
    set: str = ""
    """The name of its set among `more_problems`; empty for `problems`."""
    pass_rate: float | None = None
    """The share of right answers that was measured before the run, in [0, 1]."""
    location: str | None = None
    """Where it was read from: a file with its line, or a data set with its row."""

    def __post_init__(self) -> None:
        for name in ("question", "answer", "solution"):
            if isinstance(text := getattr(self, name), str):
                object.__setattr__(self, name, whole_characters(text))


def location(problem: Problem) -> str:
    """Where the problem was read from, or its id if that is unknown."""
    return problem.location or problem.id
