"""A mean over problems and how far it can be trusted."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

Z95 = 1.959963984540054
"""The normal distribution's quantile of a two-sided 95 % interval."""


@dataclass(frozen=True)
class Estimate:
    """A mean over problems with its 95 % interval, all in [0, 1]."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, per_problem: Float[ndarray, " P"], draws: float = 1) -> "Estimate":
        """The mean of the problems' values in [0, 1], each an average of `draws` independent ones, and its interval.

        Wilson's with as many trials as `effective_problems` says, which Franco et al. (2019, PMC6690503) recommend for
        samples in clusters; here a problem is a cluster. A bootstrap over few problems is too narrow, and a point where
        they are all alike.
        """
        mean = float(np.mean(per_problem))
        return cls(mean, *wilson_interval(mean, effective_problems(per_problem, draws)))


def wilson_interval(share: float, trials: float) -> tuple[float, float]:
    """95 % interval of a probability of which `share` is the observed share of successes in `trials` > 0.

    The probabilities that the score test does not reject (Wilson 1927, JASA 22:209).
    """
    squared = Z95 * Z95 / trials
    centre = (share + squared / 2) / (1 + squared)
    half = Z95 * math.sqrt(share * (1 - share) / trials + squared / (4 * trials)) / (1 + squared)
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def effective_problems(per_problem: Float[ndarray, " P"], draws: float = 1) -> float:
    """How many independent right-or-wrong trials would leave the mean as uncertain as these problems do.

    p (1 - p) / (s² / P), with s² the variance of the problems' values (Kish 1965, section 8.2): P where a problem is
    solved always or never, more where problems are alike and `draws` average out the luck of sampling. At least P, as
    no variance of values in [0, 1] is larger than p (1 - p), and at most P x draws, the number of samples. Where all
    are right or all are wrong nothing tells how alike a problem's samples are, and the cautious P is taken.
    """
    values = np.asarray(per_problem, dtype=float)
    problems, mean = len(values), float(values.mean())
    if problems == 1 or mean in (0.0, 1.0):
        return float(problems)
    variance = float(values.var(ddof=1))
    most = problems * max(1.0, draws)
    return most if variance == 0 else min(max(problems * mean * (1 - mean) / variance, problems), most)
