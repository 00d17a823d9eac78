"""Groups of answers that come as rows, and their rewards back in the rows' order."""

from collections.abc import Sequence

from cooper_rl.data.problem import Problem
from cooper_rl.errors import InputError
from cooper_rl.rollouts import Answer, AnswerGroup

Row = tuple[Problem, Answer]


def consecutive(rows: Sequence[Row], size: int, first: int = 0) -> list[AnswerGroup]:
    """Every `size` rows as one group, numbered from `first`. Raises InputError where they are no group."""
    groups = []
    for start in range(0, len(rows), size):
        problems, answers = zip(*rows[start : start + size], strict=True)
        if len(answers) < size or any(problem != problems[0] for problem in problems):
            raise InputError(
                f"rows {start} to {start + len(answers) - 1} are no group of {size} completions to one question; "
                "num_generations must divide the batch of all processes"
            )
        groups.append(AnswerGroup(f"{first + len(groups):06d}", problems[0], answers))
    return groups


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
