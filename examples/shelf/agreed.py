"""On-policy negatives without those that several models accept: a filter for a rule that misses many right answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import Field

from cooper_rl.engines.config import ScorerConfig
from cooper_rl.reward.pairs.sources.on_policy import OnPolicySource, WrongCompletions

if TYPE_CHECKING:
    from cooper_rl import PairInputs, RewardModel, StepContext


class AgreedOnPolicyPairs(WrongCompletions):
    """On-policy negatives, without the completions that the learning model and further models all score above 1/2.

    The rule has probably missed a right answer there (arXiv 2505.10597 and 2507.01352, secondary sources). This helps
    against a rule that misses many; a hack that all the models accept is then never taught as wrong.
    """

    agree_with: tuple[ScorerConfig, ...] = Field(min_length=1)
    """The further models, which do not learn, such as a frozen copy of the start."""

    @cached_property
    def _others(self) -> list[RewardModel]:
        from cooper_rl import load_scorer  # noqa: PLC0415 - configuration records do without torch

        return [load_scorer(model) for model in self.agree_with]

    def trusted(self, context: StepContext) -> Sequence[Sequence[bool]]:
        import torch  # noqa: PLC0415 - configuration records do without torch

        others = [model.logits(context.groups) for model in self._others]
        accepted = [logits.flat > 0 for logits in (context.logits, *others)]
        return [list(map(bool, row)) for row in context.ragged(torch.stack(accepted).all(dim=0)).rows()]

    def build(self, inputs: PairInputs) -> OnPolicySource:
        return OnPolicySource(self, inputs.config.pairs_per_problem)
