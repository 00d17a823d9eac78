"""Completions as rules and rewards see them: the text, the problem, and whether the completion stopped on its own."""

from collections.abc import Sequence
from dataclasses import dataclass

from cooper_rl.data.problem import Problem


@dataclass(frozen=True)
class Answer:
    """One completion as text. `stopped` is False if it was cut at the length limit."""

    text: str
    stopped: bool = True
    id: str | None = None
    """An optional name chosen by the caller, unique in its group."""
    tokens: int | None = None
    """Its length in tokens of the model that wrote it, if known."""


@dataclass(frozen=True)
class AnswerGroup:
    """The answers to one problem in one step. Groups may differ in size. `id` is unique in the step."""

    id: str
    problem: Problem
    answers: Sequence[Answer]
