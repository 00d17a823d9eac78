"""Answers of one group that come as rows of their own, and their rewards back in the rows' order."""

from collections.abc import Sequence

from cooper_rl.errors import InputError
from cooper_rl.rollouts.answers import Answer, AnswerGroup


def joined(rows: Sequence[AnswerGroup]) -> list[AnswerGroup]:
    """One group for every id, in the order in which they first come. Raises InputError for an id of two problems."""
    problems = {row.id: row.problem for row in reversed(rows)}
    answers: dict[str, list[Answer]] = {row.id: [] for row in rows}
    for row in rows:
        if row.problem != problems[row.id]:
            raise InputError(f"group {row.id}: its rows have several questions or reference answers")
        answers[row.id] += row.answers
    return [AnswerGroup(name, problems[name], found) for name, found in answers.items()]


def by_row(rows: Sequence[AnswerGroup], rewards: Sequence[Sequence[float]]) -> list[float]:
    """The rewards of `joined(rows)`, one for every row; a row is a group with one answer."""
    left = {group.id: iter(found) for group, found in zip(joined(rows), rewards, strict=True)}
    return [next(left[row.id]) for row in rows]
