"""Policy losses: pure functions of padded log-probabilities. The weights contain aggregation and normalisation.

`policy_loss` is what every learner minimises; the kinds below it differ in how they clip the probability ratio.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from jaxtyping import Bool, Float
from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.config.registry import Kinds
from cooper_rl.losses.kl import KLConfig, clamp_log_ratio, kl_estimate

if TYPE_CHECKING:
    from torch import Tensor

    TokenLosses = tuple[Float[Tensor, "B T"], dict[str, Tensor]]
    """The loss of each token, and metrics of each token. Their values at padding have no meaning."""

LOSSES = Kinds("policy loss", "cooper_rl.losses.policy", ["token_losses", "truncated_importance_sampling"])
"""The kinds of `algorithm.loss`."""


class PolicyLoss(Config):
    """The base of all policy losses. Each kind implements `token_losses`."""

    truncated_importance_sampling: float | None = Field(default=None, ge=1)
    """Upper bound of the importance weight exp(old_logprobs - sampler_logprobs). Each token's loss, but not its KL
    term, is multiplied by this weight, without gradient; null leaves the weight out (Yao et al. 2025, "Your efficient
    RL framework secretly brings you off-policy RL training"). The weight is 1 if the old log-probabilities are the
    sampler's own."""

    def token_losses(self, inputs: PolicyLossInputs, log_ratio: Float[Tensor, "B T"]) -> TokenLosses:
        """The loss of each token, before weighting, and metrics of each token by name.

        `log_ratio` is logprobs - old_logprobs, clamped to +-20 nats.
        """
        raise NotImplementedError


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

    logprobs: Float[Tensor, "B T"]
    old_logprobs: Float[Tensor, "B T"]
    sampler_logprobs: Float[Tensor, "B T"]
    advantages: Float[Tensor, "B T"]
    weights: Float[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]
    reference_logprobs: Float[Tensor, "B T"] | None = None


@dataclass(frozen=True)
class PolicyLossOutputs:
    """A loss to minimise, and metrics summed over the tokens of the mask.

    Both add up over micro-batches; divide the sums by the step's token count for means. `metric_sums` holds
    `clip_fraction` (tokens that clipping left without gradient; for CISPO, tokens with a changed weight), `ratio`,
    `kl_to_old` (KL(old || new), k3), `mismatch_kl` (KL(sampler || old), k3) and, if these features are on,
    `dual_clip_fraction` and `truncated_fraction`.
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
    dual_clip: float | None = Field(default=None, gt=1)
    """Bounds the loss of a token with negative advantage A at -A times this value (usually 3), however large the ratio
    (Ye et al. 2020, arXiv 1912.09729, eq. 5). Null means no bound."""

    def token_losses(self, inputs: PolicyLossInputs, log_ratio: Float[Tensor, "B T"]) -> TokenLosses:
        return _clipped(inputs.advantages, log_ratio.exp(), self.clip_low, self.clip_high, self.dual_clip)


@LOSSES.register
class GSPO(PolicyLoss):
    """PPO-clip with one ratio per completion: s = exp(mean over its tokens of logprobs - old_logprobs).

    Zheng et al. 2025 (arXiv 2507.18071, eq. 5 and 7). Every token of a completion gets the same ratio, and the gradient
    flows through all of its tokens, so only the sum of a completion's token weights matters. Combine it with
    `sequence_mean_token_mean` for the paper's objective.
    """

    kind: Literal["gspo"] = "gspo"
    clip_low: float = Field(default=3e-4, ge=0, le=1)
    """As in `ppo_clip`, but far smaller, because the log-ratio is a mean over tokens."""
    clip_high: float = Field(default=4e-4, ge=0)
    """As in `ppo_clip`, but far smaller, because the log-ratio is a mean over tokens."""

    def token_losses(self, inputs: PolicyLossInputs, log_ratio: Float[Tensor, "B T"]) -> TokenLosses:
        lengths_B1 = inputs.mask.sum(dim=1, keepdim=True).clamp(min=1)
        ratio_B1 = (log_ratio.sum(dim=1, keepdim=True) / lengths_B1).exp()
        return _clipped(inputs.advantages, ratio_B1.expand_as(log_ratio), self.clip_low, self.clip_high, None)


@LOSSES.register
class CISPO(PolicyLoss):
    """-sg(clip(r, 1 - clip_low, 1 + clip_high)) A logprobs, with sg = stop-gradient.

    It clips the weight and keeps the gradient of every token. MiniMax-M1 (arXiv 2506.13585, eq. 4 and 5).
    """

    kind: Literal["cispo"] = "cispo"
    clip_low: float = Field(default=1.0, ge=0, le=1)
    """The importance weight is at least 1 - this; 1 means no lower bound, as in the paper."""
    clip_high: float = Field(default=4.0, ge=0)
    """The importance weight is at most 1 + this. The paper tunes it but does not give its value; 4 is our choice."""

    def token_losses(self, inputs: PolicyLossInputs, log_ratio: Float[Tensor, "B T"]) -> TokenLosses:
        ratio = log_ratio.exp().detach()
        weight = ratio.clamp(1 - self.clip_low, 1 + self.clip_high)
        return -weight * inputs.advantages * inputs.logprobs, {"clip_fraction": weight != ratio, "ratio": ratio}


def _clipped(
    advantages: Float[Tensor, "B T"], ratio: Float[Tensor, "B T"], low: float, high: float, dual: float | None
) -> TokenLosses:
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
