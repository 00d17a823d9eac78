"""Splits rows so that no problem is on both sides."""

import random
from collections.abc import Sequence

from cooper_rl.data.labelled import LabelledCompletion
from cooper_rl.errors import InputError


def split_by_problem(
    rows: Sequence[LabelledCompletion], held_out: float, seed: int
) -> tuple[list[LabelledCompletion], list[LabelledCompletion]]:
    """Split rows into (training, held-out). All completions of a question are on one side (see `problem_key`).

    Whole problems are drawn until the held-out rows are at least the share `held_out` of all rows. Raises InputError if
    there are fewer than two problems.
    """
    by_problem: dict[str, list[LabelledCompletion]] = {}
    for row in rows:
        by_problem.setdefault(problem_key(row.question), []).append(row)
    if len(by_problem) < 2:
        raise InputError("the labelled rows are all about one problem; holding out needs at least two")
    problems = list(by_problem)
    random.Random(seed).shuffle(problems)
    held: list[LabelledCompletion] = []
    while len(problems) > 1 and (not held or len(held) < held_out * len(rows)):
        held += by_problem[problems.pop()]
    kept = set(problems)
    return [row for name, group in by_problem.items() if name in kept for row in group], held


def problem_key(question: str) -> str:
    """A key that is equal for questions that differ only in spacing or case."""
    return " ".join(question.casefold().split())


def problem_folds(questions: Sequence[str], folds: int, seed: int) -> list[int]:
    """A fold in [0, folds) for each question. Equal questions share a fold, and folds are of nearly equal size."""
    keys = [problem_key(question) for question in questions]
    order = list(dict.fromkeys(keys))
    random.Random(seed).shuffle(order)
    fold_of = {key: index % folds for index, key in enumerate(order)}
    return [fold_of[key] for key in keys]
