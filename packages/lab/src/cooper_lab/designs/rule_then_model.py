"""The rule pays where it has an opinion; the reward model speaks only where the rule is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from cooper_rl import RewardConfig, Scores
from cooper_rl.reward.base import REWARDS

if TYPE_CHECKING:
    from cooper_rl import StepContext


@REWARDS.register
class RuleThenModel(RewardConfig):
    """1 for `correct`, 0 for `wrong`, and the reward model's score for the verdicts that leave the answer `open`. If
    `silent` is none of these, there is no opinion where the rule is silent."""

    metric_names: ClassVar[tuple[str, ...]] = ("rule_then_model/silent",)
    reads_model: ClassVar[bool] = True
    kind: Literal["rule_then_model"] = "rule_then_model"
    open: tuple[Literal["silent", "unparsed", "timeout"], ...] = ("silent", "unparsed", "timeout")
    """Verdicts that the reward model decides; the others of them pay 0."""
    highest: float = Field(default=1.0, ge=0, le=1)
    """What a completion without a verdict earns at most. Below 1, an answer that the rule can read pays more than one
    that only the model accepts, so the policy has no reason to write answers that the rule cannot read."""

    def score(self, context: StepContext) -> Scores:
        """Rewards in [0, 1] or NaN, with the parts `rule`, `reward_model` and `logit`.

        The metric `rule_then_model/silent` is the share of completions that the model decides.
        """
        silent = context.ragged([verdict in self.open for row in context.verdicts for verdict in row]).flat
        scores = self.highest * context.probabilities.flat
        rewards = context.ragged(scores.where(silent, context.correct.flat.to(scores.dtype)))
        parts = {"rule": context.correct, **context.model_parts}
        share = silent.double().mean().item() if len(silent) else 0.0
        return Scores(rewards, parts, {"rule_then_model/silent": share})
