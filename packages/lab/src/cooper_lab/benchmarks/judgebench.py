"""JudgeBench (Tan et al. 2024, arXiv 2410.12784): pairs of answers of one model, of which one is right."""

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
)
from cooper_rl import InputError

PARTS = {
    "mmlu-pro": "knowledge",
    "livebench-reasoning": "reasoning",
    "livebench-math": "math",
    "livecodebench": "coding",
}
"""The parts of which its authors report the accuracy, by the beginning of a row's `source`."""
LABELS = ("A>B", "B>A")


def read(path: Path) -> list[Candidates]:
    """Rows with `question`, `source`, `response_A`, `response_B` and `label` (`A>B` or `B>A`).

    Optional fields are `pair_id`, `reference_answer`, and `scores`, one number for each response, A first. Raises
    InputError naming file, row and field.
    """
    return read_rows(path, _item, ("question", "source", "response_A", "response_B", "label"))


def measure(items: Sequence[Candidates], scores: Sequence[Sequence[float]]) -> Measured:
    """Accuracy of each part and of all pairs (`overall`): the right answer scores above the wrong one, a tie is wrong.

    A reward model scores one answer at a time, so it has no order of the two to be inconsistent about, which the
    published figures of judges allow for.
    """
    check_scores(items, scores)
    right = {item.subset: list[float]() for item in items}
    for item, (first, second) in zip(items, scores, strict=True):
        right[item.subset].append(float(first > second))
    parts = {name: Estimate.of(np.array(values)) for name, values in sorted(right.items())}
    parts["overall"] = Estimate.of(np.array([value for values in right.values() for value in values]))
    return Measured(len(items), {name: estimate.mean for name, estimate in parts.items()}, parts)


def _item(row: DataRow) -> Candidates:
    label, source = needed_text(row, "label").strip(), needed_text(row, "source")
    if label not in LABELS:
        raise InputError(f"{row.location}: field 'label' is {label!r}; write A>B or B>A")
    part = next((name for beginning, name in PARTS.items() if source.startswith(beginning)), None)
    if part is None:
        raise InputError(f"{row.location}: field 'source' is {source!r}; it begins with {', '.join(PARTS)}")
    names = ("response_A", "response_B") if label == LABELS[0] else ("response_B", "response_A")
    given = numbers_in(row, "scores", 2) if "scores" in row.fields else None
    return Candidates(
        id=str(row.fields.get("pair_id", row.location)),
        question=needed_text(row, "question"),
        reference=reference_of(row),
        completions=[needed_text(row, name) for name in names],
        right=1,
        subset=part,
        location=row.location,
        scores=given if given is None or label == LABELS[0] else given[::-1],
    )
