"""RewardMATH (Kim et al. 2024, arXiv 2410.01729): one right solution against nine wrong ones."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cooper_audit.statistics import Estimate
from cooper_base.data.labelled import read_rows
from cooper_base.data.readers import DataRow
from cooper_lab.benchmarks.candidates import (
    Candidates,
    Measured,
    check_scores,
    needed_text,
    numbers_in,
    reference_of,
    texts_in,
)
from cooper_rl import InputError

RIGHT_SOURCE = "human_to_GPT-4"
"""The value of `solution_reference` that marks the right solution in files of scores."""


def read(path: Path) -> list[Candidates]:
    """The benchmark's file (`RewardMATH_direct.json`), or one of its files of scores.

    The former has one row per solution: `problem`, `answer`, `problem_id`, `eval_solution` (list of steps) and
    `solution_type` (`chosen` or `rejected`). The latter has one row per problem: `problem`, `solution_reference` (where
    each solution comes from) and `score`, one number per solution. Raises InputError naming file, row and field.
    """
    rows = read_rows(path, lambda row: row, ("problem", "eval_solution", "solution_type", "problem_id"))
    if "score" in rows[0].fields:
        return [_scored(row, number) for number, row in enumerate(rows)]
    grouped: dict[str, list[DataRow]] = {}
    for row in rows:
        grouped.setdefault(needed_text(row, "problem_id"), []).append(row)
    return [_item(name, solutions) for name, solutions in grouped.items()]


def measure(items: Sequence[Candidates], scores: Sequence[Sequence[float]]) -> Measured:
    """`accuracy`: the right solution scores above all wrong ones. `mrr`: the mean reciprocal of its rank.

    Ties count against the right solution in both. `accuracy_ties_right` counts them as right; figures published for
    judges who give whole numbers can differ by tens of points between the two.
    """
    check_scores(items, scores)
    right = np.array([row[0] for row in scores])
    above = np.array([sum(score > row[0] for score in row[1:]) for row in scores])
    not_below = np.array([sum(score >= row[0] for score in row[1:]) for row in scores])
    if not np.isfinite(right).all():
        raise ValueError("RewardMATH needs finite scores")
    parts = {
        "accuracy": Estimate.of((not_below == 0).astype(float)),
        "mrr": Estimate.of(1 / (1 + not_below)),
        "accuracy_ties_right": Estimate.of((above == 0).astype(float)),
    }
    return Measured(len(items), {name: estimate.mean for name, estimate in parts.items()}, parts)


def _item(name: str, rows: Sequence[DataRow]) -> Candidates:
    """A problem from its solutions, the right one first."""
    by_type: dict[str, list[str]] = {"chosen": [], "rejected": []}
    for row in rows:
        kind = needed_text(row, "solution_type")
        if kind not in by_type:
            raise InputError(f"{row.location}: field 'solution_type' is {kind!r}; write chosen or rejected")
        by_type[kind].append("\n".join(texts_in(row, "eval_solution")))
    if len(by_type["chosen"]) != 1 or not by_type["rejected"]:
        raise InputError(
            f"{rows[0].location}: problem_id {name} has {len(by_type['chosen'])} chosen and {len(by_type['rejected'])} "
            "rejected solutions; it needs one chosen and at least one rejected"
        )
    question, completions = needed_text(rows[0], "problem"), by_type["chosen"] + by_type["rejected"]
    return Candidates(name, question, reference_of(rows[0]), completions, 1, "all", rows[0].location)


def _scored(row: DataRow, number: int) -> Candidates:
    question, sources = needed_text(row, "problem"), texts_in(row, "solution_reference")
    if sources.count(RIGHT_SOURCE) != 1 or len(sources) < 2:
        raise InputError(
            f"{row.location}: field 'solution_reference' must list {RIGHT_SOURCE} once, and wrong solutions"
        )
    if "score" not in row.fields:
        raise InputError(f"{row.location}: field 'score' is missing; the first row of the file has it")
    scores = numbers_in(row, "score", len(sources))
    order = sorted(range(len(sources)), key=lambda i: sources[i] != RIGHT_SOURCE)
    return Candidates(
        id=str(number),
        question=question,
        reference=reference_of(row),
        completions=[""] * len(sources),
        right=1,
        subset="all",
        location=row.location,
        scores=[scores[i] for i in order],
    )
