"""Intervals of means and of differences of means, and statistics of right and wrong samples."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

Z95 = 1.959963984540054
"""Quantile of the standard normal distribution for a two-sided 95 % interval."""

T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""The 0.975 quantile of Student's t with 1, 2, … 30 degrees of freedom."""


@dataclass(frozen=True)
class Estimate:
    """A mean over problems with its 95 % interval, all in [0, 1], or in [-1, 1] for a difference."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, per_problem: Float[ndarray, " P"], draws: float = 1) -> "Estimate":
        """The mean of the problems' values in [0, 1], each the average of `draws` samples, and its interval.

        It is Wilson's interval for `effective_problems` trials, as Franco et al. (2019, PMC6690503) recommend for
        clustered samples. A bootstrap over few problems would be too narrow, and of width 0 if their values are equal.
        Without problems, all three are NaN.
        """
        if not len(per_problem):
            return cls(math.nan, math.nan, math.nan)
        mean = float(np.mean(per_problem))
        return cls(mean, *wilson_interval(mean, effective_problems(per_problem, draws)))


def paired_difference(first: Float[ndarray, " P"], second: Float[ndarray, " P"]) -> Estimate:
    """The mean of `second` less that of `first`, values in [0, 1] of two policies on the same problems in one order.

    The interval is Wald's after adding two problems, half of them solved by either policy alone (Agresti and Min 2005,
    Statistics in Medicine 24:729, for right or wrong), so it has a width even if no problem tells the policies apart.
    Raises ValueError if the numbers of problems differ.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} problems are no pairs")
    by_problem = np.asarray(second, dtype=float) - np.asarray(first, dtype=float)
    mean, trials = float(by_problem.mean()), len(by_problem) + 2
    centre = float(by_problem.sum()) / trials
    half = Z95 * math.sqrt(max(0.0, (float((by_problem**2).sum()) + 1) / trials - centre**2) / trials)
    return Estimate(mean, max(-1.0, min(mean, centre - half)), min(1.0, max(mean, centre + half)))


def wilson_interval(share: float, trials: float) -> tuple[float, float]:
    """95 % interval of a probability, given the `share` of successes in trials (Wilson 1927, JASA 22:209)."""
    squared = Z95 * Z95 / trials
    centre = (share + squared / 2) / (1 + squared)
    half = Z95 * math.sqrt(share * (1 - share) / trials + squared / (4 * trials)) / (1 + squared)
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def effective_problems(per_problem: Float[ndarray, " P"], draws: float = 1) -> float:
    """Number of independent right-or-wrong trials whose mean would be as uncertain as the mean of these P problems.

    It is p (1 - p) / (s² / P), where p is the mean and s² the variance of the problems' values (Kish 1965, section
    8.2): P if every problem is solved always or never, and up to P x draws, the number of samples, if the problems are
    similar. All right or all wrong samples do not show how similar those of one problem are: the result is P.
    """
    values = np.asarray(per_problem, dtype=float)
    problems, mean = len(values), float(values.mean())
    if problems == 1 or mean in (0.0, 1.0):
        return float(problems)
    variance = float(values.var(ddof=1))
    most = problems * max(1.0, draws)
    return most if variance == 0 else min(max(problems * mean * (1 - mean) / variance, problems), most)


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean, lower and upper end of the 95 % interval by Student's t, of at most 30 degrees of freedom; else nan."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = T_975[min(len(values) - 1, len(T_975)) - 1] * math.sqrt(variance / len(values))
    return mean, mean - half, mean + half


def avg_at_k(correct: Bool[ndarray, "P k"]) -> Float[ndarray, " P"]:
    """Share of right completions for each problem. Its mean over the problems is the paper's avg@k."""
    return np.asarray(correct, dtype=float).mean(axis=1)


def pass_at_k(correct: Bool[ndarray, "P n"], k: int) -> Float[ndarray, " P"]:
    """Unbiased estimate, from n >= k completions, of the chance that at least one of k completions is right.

    If c of the n are right it is 1 - C(n - c, k) / C(n, k), computed as a product so that nothing overflows
    (Chen et al. 2021, arXiv 2107.03374, eq. 1). Raises ValueError if k is not between 1 and n.
    """
    samples = correct.shape[1]
    if not 1 <= k <= samples:
        raise ValueError(f"pass@{k} cannot be estimated from {samples} completions")
    wrong = samples - np.asarray(correct).sum(axis=1)
    factors = 1 - k / np.arange(1, samples + 1)
    # C(w, k) / C(n, k) is the product of (1 - k / i) for i from w + 1 to n, and 0 where w < k.
    misses = [np.prod(factors[w:]) if w >= k else 0.0 for w in wrong]
    return 1 - np.array(misses)


def maj_at_k(answers: Sequence[Sequence[Hashable]], correct: Bool[ndarray, "P k"]) -> Float[ndarray, " P"]:
    """Whether the answer that most of a problem's k completions state is right (Wang et al. 2022, arXiv 2203.11171).

    `answers` has what each completion states, and None for a completion that states nothing and does not vote. A tie
    between answers is decided at random, so the result is the expectation. Without any vote it is 0.
    """
    found = np.zeros(len(answers))
    for place, (stated, right) in enumerate(zip(answers, np.asarray(correct, dtype=float), strict=True)):
        votes = Counter(answer for answer in stated if answer is not None)
        most = max(votes.values(), default=0)
        winners = [
            own for answer, own in zip(stated, right, strict=True) if answer is not None and votes[answer] == most
        ]
        found[place] = np.mean(winners) if winners else 0.0
    return found
