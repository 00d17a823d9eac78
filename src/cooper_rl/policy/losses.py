"""Policy losses: pure functions of padded log-probabilities. Aggregation and normalisation are in the weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from jaxtyping import Bool, Float
from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.policy.kl import KLConfig, kl_estimate
from cooper_rl.policy.log_ratios import clamp_log_ratio

if TYPE_CHECKING:
    from torch import Tensor


class TruncatedImportanceSampling(Config):
    """What all losses share: the correction for a sampler that disagrees with the learner about probabilities."""

    truncated_importance_sampling: float | None = Field(default=None, ge=1)
    """Cap of exp(old_logprobs - sampler_logprobs), by which each token's loss (not its KL term) is multiplied,
    without gradient; null leaves it out (Yao et al. 2025, "Your efficient RL framework secretly brings you
    off-policy RL training"). Changes nothing where the old log-probabilities are the sampler's own."""


class PPOClip(TruncatedImportanceSampling):
    """max(-A r, -A clip(r, 1 - clip_low, 1 + clip_high)) with r = exp(logprobs - old_logprobs) for each token.

    Schulman et al. 2017 (arXiv 1707.06347, eq. 7); separate bounds as in DAPO (arXiv 2503.14476, eq. 10).
    """

    kind: Literal["ppo_clip"] = "ppo_clip"
    """Names this loss."""
    clip_low: float = Field(default=0.2, ge=0, le=1)
    """How far below 1 the ratio still carries gradient for a negative advantage."""
    clip_high: float = Field(default=0.2, ge=0)
    """How far above 1 the ratio still carries gradient for a positive advantage (DAPO's clip-higher: 0.28)."""
    dual_clip: float | None = Field(default=None, gt=1)
    """Bounds the loss of a negative advantage at -A times this (usual: 3), however large the ratio; null leaves it
    unbounded (Ye et al. 2020, arXiv 1912.09729, eq. 5)."""


class GSPO(TruncatedImportanceSampling):
    """PPO-clip with one ratio for the completion: s = exp(mean over its tokens of logprobs - old_logprobs).

    Zheng et al. 2025 (arXiv 2507.18071, eq. 5 and 7). Every token of the completion gets the same ratio, and the
    gradient flows through the whole of it, so the weights of a completion's tokens act as its sum; the paper's
    objective is this with `sequence_mean_token_mean`.
    """

    kind: Literal["gspo"] = "gspo"
    """Names this loss."""
    clip_low: float = Field(default=3e-4, ge=0, le=1)
    """As in `ppo_clip`; far smaller, because the ratio is a mean over tokens."""
    clip_high: float = Field(default=4e-4, ge=0)
    """As in `ppo_clip`; far smaller, because the ratio is a mean over tokens."""


class CISPO(TruncatedImportanceSampling):
    """-sg(clip(r, 1 - clip_low, 1 + clip_high)) A logprobs, sg = stop-gradient: clips the weight, keeps every token.

    MiniMax-M1 (arXiv 2506.13585, eq. 4 and 5).
    """

    kind: Literal["cispo"] = "cispo"
    """Names this loss."""
    clip_low: float = Field(default=1.0, ge=0, le=1)
    """The importance weight is at least 1 - this; 1 means no lower bound, as in the paper."""
    clip_high: float = Field(default=4.0, ge=0)
    """The importance weight is at most 1 + this. The paper tunes it and does not print it; 4 is our choice."""


PolicyLossConfig = Annotated[PPOClip | GSPO | CISPO, Field(discriminator="kind")]


class PolicyObjective(Config):
    """What a policy learner minimises."""

    loss: PolicyLossConfig = PPOClip()
    """The policy loss."""
    kl: KLConfig | None = None
    """The KL term; ignored here unless it says `where: loss`."""


@dataclass(frozen=True)
class PolicyLossInputs:
    """A micro-batch of B completions, padded on the right to T tokens; log-probabilities in nats.

    `mask` is true at completion tokens. Whatever stands elsewhere has no effect. Only `logprobs` needs a gradient.
    """

    logprobs: Float[Tensor, "B T"]
    old_logprobs: Float[Tensor, "B T"]
    sampler_logprobs: Float[Tensor, "B T"]
    advantages: Float[Tensor, "B T"]
    weights: Float[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]
    reference_logprobs: Float[Tensor, "B T"] | None = None


@dataclass(frozen=True)
class PolicyLossOutputs:
    """A loss to minimise, and sums over the tokens of the mask (divide by the step's token count for means).

    Both add up over micro-batches. `metric_sums`: `clip_fraction` (tokens that clipping left without gradient; for
    CISPO, with a changed weight), `ratio`, `kl_to_old` (KL(old || new), k3), `mismatch_kl` (KL(sampler || old), k3),
    `dual_clip_fraction` and `truncated_fraction` (where set).
    """

    loss: Float[Tensor, ""]
    metric_sums: dict[str, Float[Tensor, ""]]


def policy_loss(inputs: PolicyLossInputs, config: PolicyLossConfig, kl: KLConfig | None = None) -> PolicyLossOutputs:
    """sum over tokens of weight * (loss * truncated importance weight + coefficient * KL estimate).

    Log-ratios are clamped to +-20 nats before they are exponentiated. A non-finite log-probability of the policy at a
    completion token makes loss and gradient NaN, so that the learner skips and counts the step, instead of dropping
    out of sight behind a clip.
    Raises ValueError when a KL term of the loss has no reference log-probabilities.
    """
    inputs = _without_padding(inputs)
    log_ratio = inputs.logprobs - inputs.old_logprobs
    mismatch = inputs.old_logprobs - inputs.sampler_logprobs
    per_token, metrics = _surrogate(inputs, clamp_log_ratio(log_ratio), config)
    metrics["kl_to_old"] = kl_estimate("k3", inputs.old_logprobs, inputs.logprobs)
    metrics["mismatch_kl"] = kl_estimate("k3", inputs.sampler_logprobs, inputs.old_logprobs)

    cap = config.truncated_importance_sampling
    if cap is not None:
        weight = clamp_log_ratio(mismatch).exp().detach()
        per_token = per_token * weight.clamp(max=cap)
        metrics["truncated_fraction"] = weight > cap

    if kl is not None and kl.where == "loss" and kl.coefficient > 0:
        if inputs.reference_logprobs is None:
            raise ValueError("a KL term in the loss needs reference_logprobs")
        per_token = per_token + kl.coefficient * kl_estimate(
            kl.kind, inputs.logprobs, inputs.reference_logprobs, kl.clamp
        )

    return PolicyLossOutputs(
        loss=(inputs.weights * per_token).sum(),
        metric_sums={
            name: value.detach().to(log_ratio.dtype).where(inputs.mask, 0.0).sum() for name, value in metrics.items()
        },
    )


def _surrogate(
    inputs: PolicyLossInputs, log_ratio: Float[Tensor, "B T"], config: PolicyLossConfig
) -> tuple[Float[Tensor, "B T"], dict[str, Tensor]]:
    """Per-token losses and metrics (these also at padding, where they mean nothing)."""
    match config:
        case PPOClip():
            return _clipped(inputs.advantages, log_ratio.exp(), config.clip_low, config.clip_high, config.dual_clip)
        case GSPO():
            lengths_B1 = inputs.mask.sum(dim=1, keepdim=True).clamp(min=1)
            ratio_B1 = (log_ratio.sum(dim=1, keepdim=True) / lengths_B1).exp()
            return _clipped(inputs.advantages, ratio_B1.expand_as(log_ratio), config.clip_low, config.clip_high, None)
        case CISPO():
            ratio = log_ratio.exp().detach()
            weight = ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
            return -weight * inputs.advantages * inputs.logprobs, {"clip_fraction": weight != ratio, "ratio": ratio}


def _clipped(
    advantages: Float[Tensor, "B T"], ratio: Float[Tensor, "B T"], low: float, high: float, dual: float | None
) -> tuple[Float[Tensor, "B T"], dict[str, Tensor]]:
    unclipped = -advantages * ratio
    clipped = -advantages * ratio.clamp(1 - low, 1 + high)
    loss = unclipped.maximum(clipped)
    metrics = {"clip_fraction": clipped > unclipped, "ratio": ratio}
    if dual is not None:
        ceiling = -dual * advantages
        beyond = (advantages < 0) & (loss > ceiling)
        loss = loss.where(~beyond, ceiling)
        metrics["dual_clip_fraction"] = beyond
    return loss, metrics


def _without_padding(inputs: PolicyLossInputs) -> PolicyLossInputs:
    """The same with zeros wherever the mask is false, so that nothing there reaches a sum or a gradient."""
    tensors = {name: value for name, value in vars(inputs).items() if name != "mask" and value is not None}
    return replace(inputs, **{name: value.where(inputs.mask, 0.0) for name, value in tensors.items()})
