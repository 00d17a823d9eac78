"""What public reward-model benchmarks compute from one score per completion: each with its rule for ties."""

from collections.abc import Sequence

import numpy as np

from cooper_audit.statistics import Estimate
from cooper_lab.benchmarks.candidates import Candidates, Measured
from cooper_lab.benchmarks.rows import SECTIONS, STYLES, TIES


def of_judgebench(items: Sequence[Candidates], scores: Sequence[Sequence[float]]) -> Measured:
    """JudgeBench (Tan et al. 2024, arXiv 2410.12784): pairs of answers of one model, of which one is right.

    Accuracy of each part and of all pairs (`overall`): the right answer scores above the wrong one, a tie is wrong.

    A reward model scores one answer at a time, so it has no order of the two to be inconsistent about, which the
    published figures of judges allow for.
    """
    right = {item.subset: list[float]() for item in items}
    for item, (first, second) in zip(items, scores, strict=True):
        right[item.subset].append(float(first > second))
    parts = {name: Estimate.of(np.array(values)) for name, values in sorted(right.items())}
    parts["overall"] = Estimate.of(np.array([value for values in right.values() for value in values]))
    return Measured(len(items), {name: estimate.mean for name, estimate in parts.items()}, parts)


def of_rewardbench(items: Sequence[Candidates], scores: Sequence[Sequence[float]]) -> Measured:
    """RewardBench (Lambert et al. 2024, arXiv 2403.13787): one chosen completion against one rejected.

    Accuracy by subset, the weighted mean of each section, and the mean of the sections (`score`).

    A tie counts as wrong. Sections without any row are left out, and the prior sets of the paper's leaderboard are not
    part of this.
    """
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


def of_rewardbench2(items: Sequence[Candidates], scores: Sequence[Sequence[float]]) -> Measured:
    """RewardBench 2 (Malik et al. 2025, arXiv 2506.01937): the best of four, and problems with several right answers.

    Accuracy by subset, the Ties score (`ties_score`) if there is that subset, and the mean over subsets (`score`).

    A problem outside of Ties counts as the share of right completions among those with the highest score, so a right
    one in a tie of k counts 1 / k.
    """
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


def of_rewardmath(items: Sequence[Candidates], scores: Sequence[Sequence[float]]) -> Measured:
    """RewardMATH (Kim et al. 2024, arXiv 2410.01729): one right solution against nine wrong ones.

    `accuracy`: the right solution scores above all wrong ones. `mrr`: the mean reciprocal of its rank.

    Ties count against the right solution in both. `accuracy_ties_right` counts them as right; figures published for
    judges who give whole numbers can differ by tens of points between the two.
    """
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


def of_rmbench(items: Sequence[Candidates], scores: Sequence[Sequence[float]]) -> Measured:
    """RM-Bench (Liu et al. 2024, arXiv 2410.16184): three right completions and three wrong ones, each in three styles.

    Share of comparisons in which the right completion scores above the wrong one; a tie counts as wrong.

    `hard`: the wrong one has the richer style; `normal`: the same; `easy`: the plainer one. Each is a mean over the
    domains, as is `score`, the mean over a domain's nine comparisons.
    """
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
