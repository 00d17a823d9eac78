"""Rows of the embedded world, as the data sets of trainers have them, and its corrupter."""

import json
from typing import Any

from cooper_base.data.problem import Problem

CORRUPTER = {"kind": "corrupter", "function": "cooper_lab.arithmetic.corruption:corrupt"}


def row_of(problem: Problem, split: str = "train") -> dict[str, Any]:
    """A row as a data set of these trainers has it."""
    row = {"question": problem.question, "answer": problem.answer, "solution": problem.solution}
    return row | {"metadata": json.dumps(problem.metadata), "split": split}


def texts_of(problem: Problem, count: int = 4) -> list[str]:
    """Completions, of which every second one is right."""
    assert problem.solution is not None
    return [problem.solution if i % 2 == 0 else f"answer: {i}777" for i in range(count)]
