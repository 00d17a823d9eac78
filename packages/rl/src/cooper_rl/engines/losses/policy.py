"""The policy's loss as pure functions: clipped ratios, the KL term, and the weight of each token in a step.

`policy_loss` is what every learner minimises; its `weights` are those of `token_weights`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Protocol, Self

import numpy as np
from jaxtyping import Bool, Float, Float64, Int
from pydantic import Field, model_validator

from cooper_base.config.base import Config, Kinds

if TYPE_CHECKING:
    from torch import Tensor

    AnyShape = Float[Tensor, ...]
    Tokens = Float[Tensor, "B T"]
    TokenLosses = tuple[Tokens, dict[str, Tensor]]
    """The loss of each token, and metrics of each token. Their values at padding have no meaning."""
    Lengths = Int[np.ndarray, " R"]
    Weights = Float64[np.ndarray, " R"]

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


def pulls_in(kl: KLConfig | None, where: Literal["loss", "reward"]) -> bool:
    """Whether there is a KL term in the loss, or in the reward."""
    return kl is not None and kl.coefficient > 0 and kl.where == where


def kl_estimate(kind: KLKind, logprobs: AnyShape, reference_logprobs: AnyShape, clamp: float | None = None) -> AnyShape:
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


def clamp_log_ratio(log_ratio: AnyShape) -> AnyShape:
    """Clamp to +-20 nats, with no gradient outside. A non-finite value becomes NaN, and so does its gradient.

    A plain clamp would turn an infinite log-ratio, which is the sign of a broken model, into an ordinary number.
    """
    # x - x has value and gradient 0 for a finite x; otherwise both are NaN.
    return log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT) + (log_ratio - log_ratio)


LOSSES = Kinds("policy loss", "cooper_rl.engines.losses.policy", ["token_losses", "truncated_importance_sampling"])
"""The kinds of `algorithm.loss`."""


class PolicyLoss(Config):
    """The base of all policy losses. Each kind implements `token_losses`."""

    weighs_tokens: ClassVar[bool] = True
    """Whether each token has a ratio of its own, so that single tokens can have advantages of their own."""

    truncated_importance_sampling: float | None = Field(default=None, ge=1)
    """Upper bound of the importance weight exp(old_logprobs - sampler_logprobs). Each token's loss, but not its KL
    term, is multiplied by this weight, without gradient; null leaves the weight out (Yao et al. 2025, "Your efficient
    RL framework secretly brings you off-policy RL training"). The weight is 1 if the old log-probabilities are the
    sampler's own. With another engine as the sampler, or `rollout.lag`, the default is 2."""
    drift: Literal["product", "mean"] | None = None
    """Which measure of a completion's drift decides whether its loss, but not its KL term, is masked: `product`, if the
    product of its tokens' importance weights is above 3 (TRL's sequence_mask); `mean`, if the geometric mean of these
    weights is above 1.01 or below its inverse (verl's seq_mean_k1), which does not grow with the length. Null masks
    nothing. With another engine as the sampler, or `rollout.lag`, the default is `product`."""

    @abstractmethod
    def token_losses(self, inputs: PolicyLossInputs, log_ratio: Tokens) -> TokenLosses:
        """The loss of each token, before weighting, and metrics of each token by name.

        `log_ratio` is logprobs - old_logprobs, clamped to +-20 nats.
        """


PolicyLossConfig = Annotated[PolicyLoss, LOSSES]


class PolicyObjective(Config):
    """The objective that a policy learner minimises."""

    loss: PolicyLossConfig
    """The policy loss."""
    kl: KLConfig | None = None
    """The KL term; ignored here unless it has `where: loss`."""


@dataclass(frozen=True)
class PolicyLossInputs:
    """A micro-batch of B completions, padded on the right to T tokens. Log-probabilities are in nats.

    `mask` is true at completion tokens. Values elsewhere have no effect. Only `logprobs` needs a gradient.
    """

    logprobs: Tokens
    old_logprobs: Tokens
    sampler_logprobs: Tokens
    advantages: Tokens
    weights: Tokens
    mask: Bool[Tensor, "B T"]
    reference_logprobs: Tokens | None = None


@dataclass(frozen=True)
class PolicyLossOutputs:
    """A loss to minimise, and metrics summed over the tokens of the mask.

    Both add up over micro-batches; divide the sums by the step's token count for means. `metric_sums` holds
    `clip_fraction` (tokens that clipping left without gradient), `ratio`,
    `kl_to_old` (KL(old || new), k3), `mismatch_kl` (KL(sampler || old), k3) and, if these features are on,
    `truncated_fraction` and `drifted_fraction`.
    """

    loss: Float[Tensor, ""]
    metric_sums: dict[str, Float[Tensor, ""]]


def policy_loss(inputs: PolicyLossInputs, config: PolicyLoss, kl: KLConfig | None = None) -> PolicyLossOutputs:
    """Sum over tokens of weight * (loss * truncated importance weight + coefficient * KL estimate).

    Log-ratios are clamped to +-20 nats before they are exponentiated. A non-finite log-probability of the policy at a
    completion token makes the loss and the gradient NaN. The learner then skips and counts the step, whereas a plain
    clip would hide the fault. Raises ValueError if the loss has a KL term but no reference log-probabilities.
    """
    inputs = _without_padding(inputs)
    log_ratio = inputs.logprobs - inputs.old_logprobs
    mismatch = inputs.old_logprobs - inputs.sampler_logprobs
    per_token, metrics = config.token_losses(inputs, clamp_log_ratio(log_ratio))
    metrics["kl_to_old"] = kl_estimate("k3", inputs.old_logprobs, inputs.logprobs)
    metrics["mismatch_kl"] = kl_estimate("k3", inputs.sampler_logprobs, inputs.old_logprobs)

    if (cap := config.truncated_importance_sampling) is not None:
        weight = clamp_log_ratio(mismatch).exp().detach()
        per_token = per_token * weight.clamp(max=cap)
        metrics["truncated_fraction"] = weight > cap

    if config.drift is not None:
        drifted = has_drifted(mismatch, inputs.mask, config.drift)
        per_token = per_token.where(~drifted, 0.0)
        metrics["drifted_fraction"] = drifted.expand_as(inputs.mask)

    if kl is not None and pulls_in(kl, "loss"):
        if (reference := inputs.reference_logprobs) is None:
            raise ValueError("a KL term in the loss needs reference_logprobs")
        per_token = per_token + kl.coefficient * kl_estimate(kl.kind, inputs.logprobs, reference, kl.clamp)

    sums = {name: value.detach().to(log_ratio.dtype).where(inputs.mask, 0.0).sum() for name, value in metrics.items()}
    return PolicyLossOutputs((inputs.weights * per_token).sum(), sums)


DRIFT_LIMITS = {"product": 3.0, "mean": 1.01}
"""The limit of each measure of `PolicyLoss.drift`, as a ratio of probabilities. A product over a whole completion
gathers the rounding of all its tokens, so it may be large (3 is TRL's); in a mean over tokens rounding cancels, and one
in a hundred is another policy."""


def has_drifted(mismatch: Tokens, mask: Bool[Tensor, "B T"], drift: Literal["product", "mean"]) -> Bool[Tensor, "B 1"]:
    """The completions that the sampler's policy and the learner's disagree on; see `PolicyLoss.drift`.

    `mismatch` is old_logprobs - sampler_logprobs, 0 outside the mask. A mismatch that is no number is no drift, so that
    it stays visible.
    """
    total, limit = mismatch.sum(dim=1, keepdim=True), math.log(DRIFT_LIMITS[drift])
    if drift == "product":
        return (total > limit) & total.isfinite()
    mean = total / mask.sum(dim=1, keepdim=True).clamp(min=1)
    return (mean.abs() > limit) & mean.isfinite()


def _without_padding(inputs: PolicyLossInputs) -> PolicyLossInputs:
    """The inputs with zeros wherever the mask is false, so that nothing there reaches a sum or a gradient."""
    tensors = {name: value for name, value in vars(inputs).items() if name != "mask" and value is not None}
    return replace(inputs, **{name: value.where(inputs.mask, 0.0) for name, value in tensors.items()})


@LOSSES.register
class PPOClip(PolicyLoss):
    """max(-A r, -A clip(r, 1 - clip_low, 1 + clip_high)) with r = exp(logprobs - old_logprobs) for each token.

    Schulman et al. 2017 (arXiv 1707.06347, eq. 7), with separate bounds as in DAPO (arXiv 2503.14476, eq. 10).
    """

    kind: Literal["ppo_clip"] = "ppo_clip"
    clip_low: float = Field(default=0.2, ge=0, le=1)
    """How far below 1 the ratio still carries gradient for a negative advantage."""
    clip_high: float = Field(default=0.2, ge=0)
    """How far above 1 the ratio still carries gradient for a positive advantage (DAPO's clip-higher: 0.28)."""

    def token_losses(self, inputs: PolicyLossInputs, log_ratio: Tokens) -> TokenLosses:
        return clipped(inputs.advantages, log_ratio.exp(), self.clip_low, self.clip_high)


def clipped(advantages: Tokens, ratio: Tokens, low: float, high: float) -> TokenLosses:
    """max(-A r, -A clip(r, 1 - low, 1 + high)), and which tokens the clipping left without gradient."""
    plain = -advantages * ratio
    bounded = -advantages * ratio.clamp(1 - low, 1 + high)
    return plain.maximum(bounded), {"clip_fraction": bounded > plain, "ratio": ratio}


AGGREGATIONS = Kinds("aggregation", "cooper_rl.engines.losses.policy", ["token_weights"])
"""The kinds of `algorithm.aggregation`."""


class Aggregation(Protocol):
    """How token losses are averaged over a step."""

    def token_weights(self, lengths: Lengths, counted: Int[np.ndarray, " C"]) -> Weights:
        """For each of R completions, the weight of each of its tokens.

        `lengths` are the completions' lengths in tokens, at least 1. `counted` are the lengths of the C completions in
        the denominators, which include these R.
        """
        ...


AggregationConfig = Annotated[Aggregation, AGGREGATIONS]


def token_weights(
    lengths: Int[np.ndarray, " B"],
    config: Aggregation,
    *,
    counted: Bool[np.ndarray, " B"],
    kept: Bool[np.ndarray, " B"],
) -> Float64[np.ndarray, " B"]:
    """For each of B completions with `lengths` tokens, the weight of each of its tokens.

    `counted` rows are in the denominators. `kept` rows go through the backward pass; all others have weight 0.
    - A completion that is masked for reaching the length limit is neither counted nor kept, as if it had not been
      sampled.
    - A completion of a group without usable spread has advantage 0. It is kept if the loss has a KL term. Otherwise it
      is only counted, which does not change the gradient of any other row.

    If all counted rows are kept, the weights of all their tokens sum to 1. Dropping rows of weight 0 and splitting the
    rest into micro-batches does not change the loss. Raises ValueError if a row is kept but not counted.
    """
    if (kept & ~counted).any():
        raise ValueError("a kept completion must be counted, or the weights do not sum to 1")
    weights = np.zeros(len(lengths))
    weighed = kept & (lengths > 0)
    if weighed.any():
        weights[weighed] = config.token_weights(lengths[weighed], lengths[counted])
    return weights


@AGGREGATIONS.register
class TokenMean(Config):
    """Every counted token of the step has the same weight (DAPO, arXiv 2503.14476, eq. 8; used by Cooper)."""

    kind: Literal["token_mean"] = "token_mean"

    def token_weights(self, lengths: Lengths, counted: Int[np.ndarray, " C"]) -> Weights:
        return np.full(len(lengths), 1 / counted.sum())


@AGGREGATIONS.register
class SequenceMeanTokenMean(Config):
    """Every counted completion has the same weight, divided among its tokens (GRPO, arXiv 2402.03300, eq. 3).

    Each token of a long wrong answer is punished less than each token of a short one.
    """

    kind: Literal["sequence_mean_token_mean"] = "sequence_mean_token_mean"

    def token_weights(self, lengths: Lengths, counted: Int[np.ndarray, " C"]) -> Weights:
        return 1 / (len(counted) * lengths)
