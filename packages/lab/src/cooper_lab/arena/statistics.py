"""Paired comparisons of designs."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

EXACT_UP_TO = 16
"""Up to this many differences, every combination of signs is tried; for more, `DRAWS` combinations are drawn."""
DRAWS = 65_536


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
