"""Over-optimisation: how the gold reward rises and falls with the policy's distance from its start.

Scaling Laws for Reward Model Overoptimization (Gao et al. 2022, arXiv 2210.10760), equation 1.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

Method = Literal["best_of_n", "rl"]


@dataclass(frozen=True)
class OveroptimisationFit:
    """R(d) = start + d (alpha - beta d) for best-of-n, start + d (alpha - beta ln d) for reinforcement learning.

    The distance d is sqrt(KL(policy || start policy)), with the KL of whole completions in nats.
    """

    method: Method
    start: float
    """The reward at distance 0. The paper shifts rewards so that this is 0; here it is fitted."""
    alpha: float
    beta: float
    error: float
    """Root mean square of the residuals, in units of the reward."""

    def __call__(self, distance: Float[ndarray, " K"]) -> Float[ndarray, " K"]:
        """The fitted reward at these distances."""
        return self.start + self.alpha * distance - self.beta * _bend(distance, self.method)

    @property
    def peak(self) -> float | None:
        """The distance with the highest fitted reward: alpha / (2 beta), or e^(alpha / beta - 1).

        None if the fitted curve never falls, or falls from the start.
        """
        if self.beta <= 0:
            return None
        if self.method == "rl":
            exponent = self.alpha / self.beta - 1
            return math.exp(exponent) if exponent < 700 else None
        return self.alpha / (2 * self.beta) if self.alpha > 0 else None


def fit_over_optimisation(
    distance: Float[ndarray, " K"], reward: Float[ndarray, " K"], method: Method
) -> OveroptimisationFit:
    """Least squares in start, alpha and beta; the curve is linear in all three.

    Raises ValueError for fewer than three different distances, and for values that are not finite or below 0.
    """
    if not (np.isfinite(distance).all() and np.isfinite(reward).all() and (distance >= 0).all()):
        raise ValueError("distances must be finite and at least 0, rewards finite")
    columns = np.stack([np.ones_like(distance), distance, -_bend(distance, method)], axis=1)
    if len(np.unique(distance)) < 3 or np.linalg.matrix_rank(columns) < 3:
        raise ValueError(f"a fit needs three different distances; there are {len(np.unique(distance))}")
    (start, alpha, beta), *_ = np.linalg.lstsq(columns, reward, rcond=None)
    residuals = reward - columns @ np.array([start, alpha, beta])
    return OveroptimisationFit(method, float(start), float(alpha), float(beta), float(np.sqrt(np.mean(residuals**2))))


def _bend(distance: Float[ndarray, " K"], method: Method) -> Float[ndarray, " K"]:
    """The term that beta multiplies: d^2 or d ln d, which is 0 at d = 0."""
    if method == "best_of_n":
        return distance**2
    return distance * np.log(np.where(distance > 0, distance, 1.0))
