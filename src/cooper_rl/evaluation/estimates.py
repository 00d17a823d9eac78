"""Means over problems or over runs, and their confidence intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
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
        """The mean of the problems' values and its interval. Each value is in [0, 1] and averages `draws` samples.

        It is Wilson's interval for `effective_problems` trials, as Franco et al. (2019, PMC6690503) recommend for
        clustered samples; here a problem is a cluster. A bootstrap interval over few problems would be too narrow, and
        of width 0 if all their values are equal.
        """
        mean = float(np.mean(per_problem))
        return cls(mean, *wilson_interval(mean, effective_problems(per_problem, draws)))


def paired_difference(first: Float[ndarray, " P"], second: Float[ndarray, " P"]) -> Estimate:
    """The mean of `second` less that of `first`, values in [0, 1] of two policies on the same problems in one order.

    The interval is Wald's after adding two problems, half of them solved by either policy alone (Agresti and Min 2005,
    Statistics in Medicine 24:729, for right or wrong). It has a width even if no problem tells the policies apart. The
    pairing takes out how hard the problems are, so it is narrower than the two policies' own intervals suggest.

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
    """95 % interval of a probability, given the observed `share` of successes in `trials` > 0 trials.

    It holds the probabilities that the score test does not reject (Wilson 1927, JASA 22:209).
    """
    squared = Z95 * Z95 / trials
    centre = (share + squared / 2) / (1 + squared)
    half = Z95 * math.sqrt(share * (1 - share) / trials + squared / (4 * trials)) / (1 + squared)
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def effective_problems(per_problem: Float[ndarray, " P"], draws: float = 1) -> float:
    """Number of independent right-or-wrong trials whose mean would be as uncertain as the mean of these P problems.

    It is p (1 - p) / (s² / P), where p is the mean and s² the variance of the problems' values (Kish 1965, section
    8.2). It equals P if every problem is solved either always or never. It is larger if the problems are similar and
    averaging over `draws` removes the luck of sampling. It is at least P, because the variance of values in [0, 1] is
    at most p (1 - p), and at most P x draws, the number of samples. If all samples are right, or all are wrong, they
    do not show how similar the samples of one problem are, and the result is the cautious P.
    """
    values = np.asarray(per_problem, dtype=float)
    problems, mean = len(values), float(values.mean())
    if problems == 1 or mean in (0.0, 1.0):
        return float(problems)
    variance = float(values.var(ddof=1))
    most = problems * max(1.0, draws)
    return most if variance == 0 else min(max(problems * mean * (1 - mean) / variance, problems), most)


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95 % interval by Student's t: mean, lower end, upper end.

    A single value has no interval: both ends are nan. More than 31 values take the quantile of 30 degrees of freedom.
    """
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = T_975[min(len(values) - 1, len(T_975)) - 1] * math.sqrt(variance / len(values))
    return mean, mean - half, mean + half
