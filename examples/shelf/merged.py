"""Weight averaging: one reward model whose weights are the mean of several, instead of the mean of their scores.

Merging reward models (arXiv 2410.15035, from a secondary source): theta = mean over m of theta_m, for models that were
trained from one start, so that the same place of every tensor means the same. It costs one forward pass, where an
ensemble costs one a member. Two models that differ in nothing but a linear head score the mean of their logits.

Silence: the merged model pays everywhere. It does not learn.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from cooper_rl import RewardConfig, Scores
from cooper_rl.engines.config import ScorerConfig

if TYPE_CHECKING:
    from cooper_rl import RewardModel, StepContext


class Merged(RewardConfig):
    """The score of the reward model whose weights are the mean of the members'."""

    compares_answers: ClassVar[bool] = False
    reads_model: ClassVar[bool] = True
    members: tuple[ScorerConfig, ...] = Field(min_length=2)
    """The reward models, of one architecture and trained from one start."""

    @cached_property
    def _merged(self) -> RewardModel:
        """Raises ValueError for members of different shapes."""
        import torch  # noqa: PLC0415 - configuration records do without torch

        from cooper_rl import load_scorer  # noqa: PLC0415 - as above

        models = [load_scorer(member) for member in self.members]
        weights = [model.learner.model.parameters() for model in models]  # pyright: ignore[reportAttributeAccessIssue]
        with torch.no_grad():
            for own, *others in zip(*weights, strict=True):
                own.copy_(torch.stack([own, *others]).mean(dim=0))
        return models[0]

    def score(self, context: StepContext) -> Scores:
        """Rewards in [0, 1]: the part `merged`, beside those of the run's own reward model, which does not pay."""
        logits = context.once(self, lambda: self._merged.logits(context.groups))
        paid = context.ragged(logits.flat.sigmoid())
        return Scores(paid, context.model_parts | {"merged": paid}, {})
