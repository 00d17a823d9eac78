"""Estimators of the KL divergence between the policy and its frozen reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from jaxtyping import Float
from pydantic import Field, model_validator

from cooper_rl.config.base import Config

if TYPE_CHECKING:
    from torch import Tensor

KLKind = Literal["k1", "k2", "k3"]
LOG_RATIO_LIMIT = 20.0
"""In nats. exp(20) is about 5e8: far outside any trust region, but still far from overflow in float32."""


class KLConfig(Config):
    """The pull towards the reference policy."""

    kind: KLKind = "k3"
    """Estimator: `k1` (log-ratio), `k2` (half its square) or `k3` (low variance, never negative)."""
    coefficient: float = Field(default=0.001, ge=0)
    """Weight of the KL term (beta)."""
    where: Literal["loss", "reward"] = "loss"
    """`loss` adds each token's estimate to the token's loss and differentiates it; use k2 or k3 there, because k1 has
    zero gradient in expectation. `reward` subtracts the estimate, summed over a completion, from its reward; use k1
    there."""
    clamp: float | None = Field(default=None, gt=0)
    """Upper bound of a token's k3 estimate, in nats (verl: 10). Beyond it, the estimate has no gradient and no longer
    pulls. Null means no bound."""

    @model_validator(mode="after")
    def _settings_agree(self) -> Self:
        if self.clamp is not None and self.kind != "k3":
            raise ValueError(f"clamp bounds the k3 estimate, but kind is {self.kind}; leave clamp out or use kind: k3")
        return self


def kl_estimate(
    kind: KLKind,
    logprobs: Float[Tensor, ...],
    reference_logprobs: Float[Tensor, ...],
    clamp: float | None = None,
) -> Float[Tensor, ...]:
    """Estimate KL(policy || reference) in nats, one value per token, from tokens drawn from the policy.

    With l = log policy - log reference: k1 = l, k2 = l^2 / 2, k3 = exp(-l) - 1 + l
    (Schulman, "Approximating KL divergence", http://joschu.net/blog/kl-approx.html, 2020).
    k1 and k3 are unbiased; k2 is biased by a third-order term. In k3 the exponent is clamped to +-20 nats, and the
    result to at most `clamp`.

    A good estimate of the value may have a poor gradient. Over tokens drawn from the policy itself, the mean gradient
    of k1 is zero; that of k2 is the gradient of KL(policy || reference); that of k3 is the gradient of
    KL(reference || policy), which agrees with the former to first order near the reference
    (Tang and Munos 2025, arXiv 2506.09477).
    """
    log_ratio = logprobs - reference_logprobs
    if kind == "k1":
        return log_ratio
    if kind == "k2":
        return log_ratio.square() / 2
    inverse = clamp_log_ratio(-log_ratio)
    estimate = inverse.expm1() - inverse
    return estimate if clamp is None else estimate.clamp(max=clamp)


def clamp_log_ratio(log_ratio: Float[Tensor, ...]) -> Float[Tensor, ...]:
    """Clamp to +-20 nats, with no gradient outside. A non-finite value becomes NaN, and so does its gradient.

    A plain clamp would turn an infinite log-ratio, which is the sign of a broken model, into an ordinary number.
    """
    # x - x has value and gradient 0 for a finite x; otherwise both are NaN.
    return log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT) + (log_ratio - log_ratio)
