"""Intervals over seeds, and paired comparisons of designs."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from jaxtyping import Float

T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""The 0.975 quantile of Student's t with 1, 2, … 30 degrees of freedom."""
EXACT_UP_TO = 16
"""Most differences whose signs are flipped in every way; of more, `DRAWS` ways are drawn."""
DRAWS = 65_536


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95 % interval by Student's t: mean, lower end, upper end.

    A single value has no interval: both ends are nan. More than 31 values take the quantile of 30 degrees of freedom.
    """
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = T_975[min(len(values) - 1, len(T_975)) - 1] * sqrt(variance / len(values))
    return mean, mean - half, mean + half


def sign_flip_p(differences: Sequence[float]) -> float:
    """Two-sided p-value of a paired permutation test: the mean of `differences` under flips of their signs.

    Exact for up to `EXACT_UP_TO` differences, else by `DRAWS` random flips with the observed signs counted among them.
    """
    values = np.asarray(differences, dtype=np.float64)
    if len(values) == 0:
        return 1.0
    observed = abs(values.mean())
    if len(values) <= EXACT_UP_TO:
        return float((_means(_every_sign(len(values)), values) >= observed - 1e-12).mean())
    signs = np.random.default_rng(0).choice((-1.0, 1.0), size=(DRAWS, len(values)))
    return float(((_means(signs, values) >= observed - 1e-12).sum() + 1) / (DRAWS + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values that keep the chance of any false finding, in order of the input (Holm 1979)."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def _means(signs: Float[np.ndarray, "K N"], values: Float[np.ndarray, " N"]) -> Float[np.ndarray, " K"]:
    return np.abs(signs @ values) / len(values)


def _every_sign(count: int) -> Float[np.ndarray, "K N"]:
    """Each of the 2^count ways to give signs."""
    ways = np.arange(2**count)[:, None] >> np.arange(count)[None, :]
    return 1.0 - 2.0 * (ways & 1)
