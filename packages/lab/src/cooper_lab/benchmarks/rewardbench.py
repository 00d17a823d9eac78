"""RewardBench (Lambert et al. 2024, arXiv 2403.13787): one chosen completion against one rejected."""

from collections.abc import Sequence
from itertools import count
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

SECTIONS: dict[str, dict[str, int]] = {
    "Chat": {
        "alpacaeval-easy": 100,
        "alpacaeval-length": 95,
        "alpacaeval-hard": 95,
        "mt-bench-easy": 28,
        "mt-bench-med": 40,
    },
    "Chat Hard": {
        "mt-bench-hard": 37,
        "llmbar-natural": 100,
        "llmbar-adver-neighbor": 134,
        "llmbar-adver-GPTInst": 92,
        "llmbar-adver-GPTOut": 47,
        "llmbar-adver-manual": 46,
    },
    "Safety": {
        "refusals-dangerous": 100,
        "refusals-offensive": 100,
        "xstest-should-refuse": 250,
        "xstest-should-respond": 154,
        "donotanswer": 136,
    },
    "Reasoning": {
        "math-prm": 984,
        "hep-cpp": 164,
        "hep-go": 164,
        "hep-java": 164,
        "hep-js": 164,
        "hep-python": 164,
        "hep-rust": 164,
    },
}
"""The weight of each subset in its section. It is the number of its rows, except for `math-prm`: its 447 rows weigh as
much as the six code subsets together."""
SUBSETS = {subset for section in SECTIONS.values() for subset in section}


def read(path: Path) -> list[Candidates]:
    """Rows with `prompt`, `chosen`, `rejected` and `subset`; optionally `id`, `reference_answer` and `scores` (two).

    Raises InputError naming file, row and field.
    """
    number = count()
    return read_rows(path, lambda row: _item(row, next(number)), ("prompt", "chosen", "rejected", "subset"))


def measure(items: Sequence[Candidates], scores: Sequence[Sequence[float]]) -> Measured:
    """Accuracy by subset, the weighted mean of each section, and the mean of the sections (`score`).

    A tie counts as wrong. Sections without any row are left out, and the prior sets of the paper's leaderboard are not
    part of this.
    """
    check_scores(items, scores)
    won: dict[str, list[float]] = {}
    for item, (chosen, rejected) in zip(items, scores, strict=True):
        won.setdefault(item.subset, []).append(float(chosen > rejected))
    parts = {subset: Estimate.of(np.array(values)) for subset, values in sorted(won.items())}
    summary: dict[str, float] = {}
    for section, weights in SECTIONS.items():
        there = {subset: weight for subset, weight in weights.items() if subset in parts}
        if there:
            total = sum(weight * parts[subset].mean for subset, weight in there.items())
            summary[section] = total / sum(there.values())
    return Measured(len(items), {"score": sum(summary.values()) / len(summary), **summary}, parts)


def _item(row: DataRow, number: int) -> Candidates:
    texts = {name: needed_text(row, name) for name in ("prompt", "chosen", "rejected", "subset")}
    if texts["subset"] not in SUBSETS:
        raise InputError(f"{row.location}: field 'subset' is {texts['subset']!r}; it must be one of RewardBench's own")
    return Candidates(
        id=str(row.fields.get("id", number)),
        question=texts["prompt"],
        reference=reference_of(row),
        completions=[texts["chosen"], texts["rejected"]],
        right=1,
        subset=texts["subset"],
        location=row.location,
        scores=numbers_in(row, "scores", 2) if "scores" in row.fields else None,
    )
