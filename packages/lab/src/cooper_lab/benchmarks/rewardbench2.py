"""RewardBench 2 (Malik et al. 2025, arXiv 2506.01937): the best of four, and problems with several right answers."""

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

TIES = "Ties"


def read(path: Path) -> list[Candidates]:
    """Rows with `id`, `prompt`, `chosen` (list), `rejected` (list) and `subset`.

    An id of the subset `Ties` is `ref:NUMBER` (one right answer) or `tied:NUMBER` (several). Optional fields are
    `reference_answer` and `scores`, with one number per completion, chosen ones first. Raises InputError naming file,
    row and field.
    """
    return read_rows(path, _item, ("id", "prompt", "chosen", "rejected", "subset"))


def measure(items: Sequence[Candidates], scores: Sequence[Sequence[float]]) -> Measured:
    """Accuracy by subset, the Ties score (`ties_score`) if there is that subset, and the mean over subsets (`score`).

    A problem outside of Ties counts as the share of right completions among those with the highest score, so a right
    one in a tie of k counts 1 / k.
    """
    check_scores(items, scores)
    shares: dict[str, list[float]] = {}
    tied: list[tuple[Candidates, Sequence[float]]] = []
    for item, row in zip(items, scores, strict=True):
        if item.subset == TIES:
            tied.append((item, row))
        else:
            best = [i for i, score in enumerate(row) if score == max(row)]
            shares.setdefault(item.subset, []).append(sum(i < item.right for i in best) / len(best))
    parts = {subset: Estimate.of(np.array(values)) for subset, values in sorted(shares.items())}
    summary = {subset: estimate.mean for subset, estimate in parts.items()}
    if tied:
        summary["ties_score"] = ties_score(*zip(*tied, strict=True))
    return Measured(len(items), {"score": sum(summary.values()) / len(summary), **summary}, parts)


def ties_score(items: Sequence[Candidates], scores: Sequence[Sequence[float]]) -> float:
    """The score of the subset Ties: 0.3 tied + 0.3 ref + 0.2 preferred + 0.2 hard + 0.01 margin.

    `tied` and `ref` are the shares of problems of that kind in which every right answer scores above every wrong one.
    The other terms are means over the numbers that have problems of both kinds. With the gap g between the lowest right
    and the highest wrong score and the spread s of the tied problem's right scores: `preferred` is g_tied > s, `hard`
    is min(g_tied, g_ref) > s, and `margin` is tanh(min(g_tied, g_ref) / s - 1), or 0 for 0 / 0. This is the released
    code (allenai/reward-bench, `process_single_model`). A kind without problems counts 0.
    """
    check_scores(items, scores)
    gaps: dict[str, dict[str, float]] = {"ref": {}, "tied": {}}
    spreads: dict[str, float] = {}
    for item, row in zip(items, scores, strict=True):
        kind, number = item.id.split(":", 1)
        right, wrong = row[: item.right], row[item.right :]
        gaps[kind][number] = min(right) - max(wrong)
        if kind == "tied":
            spreads[number] = max(right) - min(right)
    both = [number for number in gaps["tied"] if number in gaps["ref"]]
    total = 0.3 * _share(gaps["tied"].values()) + 0.3 * _share(gaps["ref"].values())
    if not both:
        return total
    spread = np.array([spreads[number] for number in both])
    gap = np.array([gaps["tied"][number] for number in both])
    smaller = np.minimum(gap, [gaps["ref"][number] for number in both])
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = np.nan_to_num(np.tanh(smaller / spread - 1), nan=0.0)
    return float(total + 0.2 * (gap > spread).mean() + 0.2 * (smaller > spread).mean() + 0.01 * margin.mean())


def _share(gaps: object) -> float:
    """The share of gaps above 0; 0 if there are none."""
    values = np.array(list(gaps), dtype=float)  # pyright: ignore[reportArgumentType]
    return float((values > 0).mean()) if values.size else 0.0


def _item(row: DataRow) -> Candidates:
    name, prompt, subset = (needed_text(row, field) for field in ("id", "prompt", "subset"))
    right, wrong = texts_in(row, "chosen"), texts_in(row, "rejected")
    if subset == TIES and not (name.startswith(("ref:", "tied:")) and name.split(":", 1)[1]):
        raise InputError(f"{row.location}: field 'id' is {name!r}; in the subset Ties it is ref:NUMBER or tied:NUMBER")
    return Candidates(
        id=name,
        question=prompt,
        reference=reference_of(row),
        completions=right + wrong,
        right=len(right),
        subset=subset,
        location=row.location,
        scores=numbers_in(row, "scores", len(right) + len(wrong)) if "scores" in row.fields else None,
    )
