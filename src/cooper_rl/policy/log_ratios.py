"""Differences of log-probabilities, made safe to exponentiate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxtyping import Float

if TYPE_CHECKING:
    from torch import Tensor

LOG_RATIO_LIMIT = 20.0
"""Nats. exp(20) is about 5e8: far outside any trust region, and still far from overflow in float32."""


def clamp_log_ratio(log_ratio: Float[Tensor, ...]) -> Float[Tensor, ...]:
    """Clamp to +-20 nats, without gradient outside; a non-finite value becomes NaN, and so does its gradient.

    A plain clamp would turn an infinite log-ratio, the trace of a broken model, into an ordinary number.
    """
    # x - x is 0 with gradient 0 for a finite x and NaN otherwise, in value and in gradient.
    return log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT) + (log_ratio - log_ratio)
