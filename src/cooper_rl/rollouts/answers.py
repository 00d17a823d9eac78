"""What a judgement needs of a completion: its text, its problem, and whether it ended by itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from cooper_rl.data.problem import Problem


@dataclass(frozen=True)
class Answer:
    """One completion as text. `stopped` is False where it was cut at the length limit."""

    text: str
    stopped: bool = True
    id: str | None = None
    """A name of the caller's own, unique in its group."""
    tokens: int | None = None
    """Its length in tokens of whoever wrote it, where that is known."""


@dataclass(frozen=True)
class AnswerGroup:
    """The answers to one problem in one step. Groups may differ in size; `id` is unique in the step."""

    id: str
    problem: Problem
    answers: Sequence[Answer]
