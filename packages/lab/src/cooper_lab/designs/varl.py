"""VARL: verified answers are paid by how much they look like demonstrations.

Verified adversarial reward learning (arXiv 2607.01181, S: a summary, so check before you cite): 1[O] * D, where D tells
demonstrations from *accepted* samples. A policy that passes the rule by a trick looks unlike the demonstrations. The
best D is p / (p + q) of the densities of demonstrations and accepted samples, and the samples' mean of it is
1/2 - 1/4 sum (p - q)^2 / (p + q): 1/2 where both are the same. In the paper D reads features of the answer; here D is
the run's reward model, with `cooptimization.loss: {kind: "cooper_lab.designs.cross_entropy:CrossEntropy"}`.

Needs solutions. Where D has no spread, GRPO blows up its noise: set `algorithm.advantages.std_floor`. D sees form
first.

Silence: the published product is 0 there, as for a wrong answer. Ours has no opinion, and D learns from neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cooper_base.data.text import normalise
from cooper_rl import MadePairs, RewardConfig, Scores
from cooper_rl.reward.base import REWARDS
from cooper_rl.reward.pairs.base import PAIRS
from cooper_rl.reward.pairs.sources.teacher import TeacherPairs, TeacherSource

if TYPE_CHECKING:
    from cooper_rl import PairGroup, PairInputs, StepContext


@PAIRS.register
class DemonstrationPairs(TeacherPairs):
    """The problem's solution above the completions that the rule accepts: `teacher`, for accepted samples alone."""

    kind: Literal["varl"] = "varl"  # pyright: ignore[reportIncompatibleVariableOverride]

    def build(self, inputs: PairInputs) -> DemonstrationSource:
        return DemonstrationSource(self.kind, inputs.config.pairs_per_problem)


class DemonstrationSource(TeacherSource):
    """Makes up to `count` pairs of each group, each with a completion that the rule accepts."""

    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Any]) -> MadePairs:
        made = []
        for group in groups:
            solution = normalise(group.problem.solution or "")
            accepted = [text for text in group.different("correct", stopped=False) if text != solution]
            chosen = group.random("varl").sample(accepted, min(self._count, len(accepted)))
            made += [group.pair(solution, text, self._kind, "reference_solution") for text in chosen]
        return MadePairs(made)


@REWARDS.register
class Varl(RewardConfig):
    """sigmoid(logit) of the run's reward model where the rule accepts, 0 where it does not."""

    reads_model: ClassVar[bool] = True
    compares_answers: ClassVar[bool] = False
    kind: Literal["varl"] = "varl"

    def score(self, context: StepContext) -> Scores:
        """Rewards in [0, 1], or NaN where the rule is silent."""
        paid = context.ragged(context.correct.flat * context.probabilities.flat)
        return Scores(paid, {"rule": context.correct, **context.model_parts})
