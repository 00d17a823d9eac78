"""RM-Bench (Liu et al. 2024, arXiv 2410.16184): three right completions and three wrong ones, each in three styles."""

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
    texts_in,
)
from cooper_rl import InputError

DOMAINS = ("chat", "code", "math", "safety")
"""`safety` has `safety-refuse` and `safety-response`, pooled."""
STYLES = 3
"""Concise, detailed, and detailed with Markdown, in this order, of both right and wrong completions."""


def read(path: Path) -> list[Candidates]:
    """The benchmark's files: rows with `prompt`, `chosen` and `rejected` (three each) and `domain`, which the files of
    one domain have in their name instead; or results of its own script, which also have `score_chosen` and
    `score_rejected`. Optionally `id` and `reference_answer`. Raises InputError naming file, row and field.
    """
    number = count()
    return read_rows(path, lambda row: _item(row, next(number), path), ("prompt", "chosen", "rejected", "domain"))


def measure(items: Sequence[Candidates], scores: Sequence[Sequence[float]]) -> Measured:
    """Share of comparisons in which the right completion scores above the wrong one; a tie counts as wrong.

    `hard`: the wrong one has the richer style; `normal`: the same; `easy`: the plainer one. Each is a mean over the
    domains, as is `score`, the mean over a domain's nine comparisons.
    """
    check_scores(items, scores)
    won: dict[str, list[np.ndarray]] = {}
    for item, row in zip(items, scores, strict=True):
        right, wrong = np.array(row[:STYLES]), np.array(row[STYLES:])
        won.setdefault(item.subset, []).append(right[:, None] > wrong[None, :])
    upper = np.triu(np.ones((STYLES, STYLES), dtype=bool), 1)
    cells = {"hard": upper, "normal": np.eye(STYLES, dtype=bool), "easy": upper.T}
    parts = {name: Estimate.of(np.array([row.mean() for row in rows])) for name, rows in sorted(won.items())}
    summary = {"score": float(np.mean([part.mean for part in parts.values()]))}
    for name, chosen in cells.items():
        summary[name] = float(np.mean([np.mean(rows, axis=0)[chosen].mean() for rows in won.values()]))
    return Measured(len(items), {**summary, **{name: part.mean for name, part in parts.items()}}, parts)


def _item(row: DataRow, number: int, path: Path) -> Candidates:
    name = needed_text(row, "domain") if "domain" in row.fields else path.name
    domain = next((domain_name for domain_name in DOMAINS if name.startswith(domain_name)), None)
    if domain is None:
        raise InputError(f"{row.location}: {name!r} is none of the domains {', '.join(DOMAINS)}; give a field 'domain'")
    prompt, right, wrong = needed_text(row, "prompt"), texts_in(row, "chosen"), texts_in(row, "rejected")
    if len(right) != STYLES or len(wrong) != STYLES:
        raise InputError(
            f"{row.location}: fields 'chosen' and 'rejected' have {len(right)} and {len(wrong)} texts; each needs "
            f"{STYLES}: concise, detailed, with Markdown"
        )
    scores = [
        numbers_in(row, f"score_{part}", STYLES) for part in ("chosen", "rejected") if f"score_{part}" in row.fields
    ]
    return Candidates(
        id=str(row.fields.get("id", number)),
        question=prompt,
        reference=reference_of(row),
        completions=right + wrong,
        right=STYLES,
        subset=domain,
        location=row.location,
        scores=scores[0] + scores[1] if len(scores) == 2 else None,
    )
