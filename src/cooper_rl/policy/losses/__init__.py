"""Policy losses: pure functions of padded log-probabilities. The weights contain aggregation and normalisation.

Each loss is a record in a file of this package.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from jaxtyping import Bool, Float
from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.config.registry import Kinds
from cooper_rl.policy.kl import KLConfig, kl_estimate
from cooper_rl.policy.log_ratios import clamp_log_ratio

if TYPE_CHECKING:
    from torch import Tensor

    TokenLosses = tuple[Float[Tensor, "B T"], dict[str, Tensor]]
    """The loss of each token, and metrics of each token. Their values at padding have no meaning."""

LOSSES = Kinds("policy loss", "cooper_rl.policy.losses", ["of_tokens", "truncated_importance_sampling"])
"""The kinds of `algorithm.loss`."""


class PolicyLoss(Config):
    """The base of all policy losses. Each kind implements `of_tokens`."""

    truncated_importance_sampling: float | None = Field(default=None, ge=1)
    """Upper bound of the importance weight exp(old_logprobs - sampler_logprobs). Each token's loss, but not its KL
    term, is multiplied by this weight, without gradient; null leaves the weight out (Yao et al. 2025, "Your efficient
    RL framework secretly brings you off-policy RL training"). The weight is 1 if the old log-probabilities are the
    sampler's own."""

    def of_tokens(self, inputs: PolicyLossInputs, log_ratio: Float[Tensor, "B T"]) -> TokenLosses:
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
    per_token, metrics = config.of_tokens(inputs, clamp_log_ratio(log_ratio))
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
