"""Settings of stage 1: advantages, policy loss, KL term, aggregation, cut-off completions."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cooper_base.config.base import Config
from cooper_rl.engines.losses.policy import AggregationConfig, KLConfig, PolicyLossConfig, PPOClip, TokenMean
from cooper_rl.policy.advantages import ADVANTAGES, GRPO, AdvantageConfig

CORRECTION = {"truncated_importance_sampling": 2.0, "drift": "product"}
"""The settings of the loss where the sampler's log-probabilities are not the learner's: the bounds of verl and TRL."""


class AlgorithmConfig(Config):
    """How rewards become a policy update."""

    advantages: Annotated[AdvantageConfig, ADVANTAGES] = GRPO()
    """How rewards are compared inside a group."""
    loss: PolicyLossConfig = PPOClip()
    """The policy loss."""
    kl: KLConfig | None = KLConfig()
    """The pull towards the frozen start. Null removes it and saves the reference policy's memory."""
    aggregation: AggregationConfig = TokenMean()
    """How token losses are averaged over the step."""
    overlong: Literal["keep", "mask"] = "keep"
    """What happens to completions that were cut at the length limit. `keep` treats them like any other. `mask` leaves
    them out of the loss and its denominators; their rewards still count in the group's baseline. The shaping `overlong`
    subtracts a penalty near the limit."""
    min_spread: float = Field(default=0.01, ge=0)
    """Groups whose rewards (after shaping) differ by no more than this get advantage 0, because reward-model scores are
    never exactly equal. These groups still count in the loss's denominators. If the loss has a KL term, they keep it;
    otherwise the backward pass leaves them out."""
    minibatches: int = Field(default=1, ge=1)
    """Optimizer steps on each step's rollouts. Each one uses its share of the groups."""
    recompute_old_logprobs: bool = False
    """Take the log-probabilities before the update from the learner, not from the sampler, for engines in which the two
    disagree. The default is true where the loss corrects for the difference, as it does with another engine as the
    sampler, or `rollout.lag`."""

    def corrected(self) -> Self:
        """These settings for completions that another engine, or an older policy, has drawn: with importance sampling
        and the masking of completions that drifted, where the user has not set them."""
        if "recompute_old_logprobs" in self.model_fields_set and not self.recompute_old_logprobs:
            return self
        given = self.loss.model_fields_set
        defaults = {name: value for name, value in CORRECTION.items() if name not in given and hasattr(self.loss, name)}
        loss = self.loss.model_copy(update=defaults)
        return self.model_copy(update={"loss": loss, "recompute_old_logprobs": True})

    @model_validator(mode="after")
    def _settings_agree(self) -> Self:
        self.advantages.check_algorithm(self)
        if self.advantages.credits_tokens and not self.loss.weighs_tokens:
            raise ValueError(
                "this loss has one ratio per completion, so the credit of single tokens would be spread over "
                "all of them; use another loss, or advantages without token credit"
            )
        corrects = [name for name in CORRECTION if getattr(self.loss, name, None) is not None]
        if corrects and "recompute_old_logprobs" not in self.model_fields_set:
            object.__setattr__(self, "recompute_old_logprobs", True)  # the record is frozen for its users
        if corrects and not self.recompute_old_logprobs:
            raise ValueError(
                f"loss.{corrects[0]} needs the learner's own log-probabilities in addition; leave out "
                "recompute_old_logprobs: false"
            )
        return self
