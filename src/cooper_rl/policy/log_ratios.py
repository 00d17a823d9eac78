"""Log-ratios (differences of log-probabilities) that are safe to exponentiate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxtyping import Float

if TYPE_CHECKING:
    from torch import Tensor

LOG_RATIO_LIMIT = 20.0
"""In nats. exp(20) is about 5e8: far outside any trust region, but still far from overflow in float32."""


def clamp_log_ratio(log_ratio: Float[Tensor, ...]) -> Float[Tensor, ...]:
    """Clamp to +-20 nats, with no gradient outside. A non-finite value becomes NaN, and so does its gradient.

    A plain clamp would turn an infinite log-ratio, which is the sign of a broken model, into an ordinary number.
    """
    # x - x has value and gradient 0 for a finite x; otherwise both are NaN.
    return log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT) + (log_ratio - log_ratio)
