"""`earned`: rule and reward model, weighted by how well the reward model agrees with the rule."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, ClassVar, Literal

from cooper_rl.reward.base import REWARDS, RewardConfig, Scores
from cooper_rl.reward.health import other_reference, scores_when_near, scores_when_swapped

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from cooper_rl.reward.context import StepContext

POWER = 2.0
"""How fast the weight falls with the agreement. A larger power would trust only a model that agrees nearly always."""
MEMORY = 16
"""Verdicts of a class (right, wrong) to which older ones fill up a step that has fewer. In a step with more, older ones
count at most as much as its own, so a model that is being hacked loses its weight in the same step."""


@REWARDS.register
class EarnedConfig(RewardConfig):
    """w * reward model + (1 - w) * rule. The weight w is earned by telling what the rule accepts from what it rejects.

    With J = the share of rule-correct completions that the model accepts minus the share of rule-wrong ones (Youden's
    J: 1 for full agreement, 0 for guessing), w = max(0, J)^2. Both shares begin with one verdict against the model, so
    w is 0 before the first verdicts, and at most (1 - 1 / (right + 1) - 1 / (wrong + 1))^2 after so many.

    Where the rule is silent on a whole group, w * reward model pays: trust is earned where the rule speaks. It pays
    accepted answers alone, and of these not what they would score under a reference near to the problem's, or another
    problem's.
    There is no opinion on an answer on which the rule is silent if it judges others of its group, or if w is 0. An
    answer without a finite logit is paid by the rule alone.

    A rule that has never judged anything leaves the reference solutions to testify, if the reward model learns from
    them: right under their own reference, wrong under another problem's.
    """

    reads_model: ClassVar[bool] = True
    kind: Literal["earned"] = "earned"

    def build(self) -> EarnedReward:
        return EarnedReward()


class EarnedReward:
    def __init__(self) -> None:
        self._counts = [0.0] * 4
        """Counts over finished steps: rule-correct, accepted of these, rule-wrong, accepted of these."""

    def score(self, context: StepContext) -> Scores:
        """Rewards in [0, 1] or NaN, with the parts `rule`, `reward_model`, `logit` and, where the model alone pays,
        `near`: the score of an accepted answer under a near reference, NaN of any other. The metric `earned/weight` is
        w, `earned/verdicts` the number of verdicts behind it, of the class that has fewer, and
        `reward_model/kept_when_near` the share of accepted silent answers that are accepted under a near reference.

        The evidence is that of finished steps, of these answers and of the others of their step that were scored.
        """
        seen = [context, *context.others_of_step]
        counts, rule = self._with(seen), context.correct
        if not any(counts):
            counts = _of_solutions(seen)
        weight = self._weight(counts, seen)
        scores, by_rule = context.probabilities.flat, rule.flat.to(context.probabilities.flat.dtype)
        pays = context.logits.flat.isfinite() & (weight > 0)  # 0 * NaN would be NaN
        rewards = (weight * scores + (1 - weight) * by_rule).where(pays, by_rule)
        parts = {"rule": rule, **context.model_parts}
        metrics = {"earned/weight": weight, "earned/verdicts": min(counts[0], counts[2])}
        by_model = context.silent.flat & ~context.passed_over.flat & pays
        if by_model.any():
            near = scores_when_near(context).flat
            of_model, kept = _read_from_reference(context, near)
            rewards = (weight * of_model).where(by_model, rewards)
            metrics["reward_model/kept_when_near"] = kept
            parts["near"] = context.ragged(near.where(near > 0, nan))
        return Scores(context.ragged(rewards), parts, metrics)

    def commit(self, contexts: Sequence[StepContext]) -> None:
        """Add a finished step to the counts, however many calls scored it."""
        self._counts = self._with(contexts)

    def state(self) -> list[float]:
        """The four counts."""
        return list(self._counts)

    def restore(self, state: list[float]) -> None:
        self._counts = list(state)

    def _weight(self, counts: Sequence[float], contexts: Sequence[StepContext]) -> float:
        """The weight by the counts after a step with these groups."""
        return earned_weight(counts)

    def _with(self, contexts: Sequence[StepContext]) -> list[float]:
        """The counts after a step with these groups. A score that is not finite is no acceptance."""
        now = [0.0] * 4
        for context in contexts:
            accepts = ((context.logits.flat > 0) & context.logits.flat.isfinite()).tolist()
            verdicts = [verdict for row in context.verdicts for verdict in row]
            for accepted, verdict in zip(accepts, verdicts, strict=True):
                if verdict in ("correct", "wrong"):
                    place = 0 if verdict == "correct" else 2
                    now[place] += 1
                    now[place + 1] += accepted
        return [*newer(self._counts[:2], now[:2]), *newer(self._counts[2:], now[2:])]


def _read_from_reference(context: StepContext, near: Float[Tensor, " B"]) -> tuple[Float[Tensor, " B"], float]:
    """What each answer without a verdict is worth by the model's score; and the share of those that it accepts which it
    accepts under a near reference too, where its scores are `near`.

    Worth is the score less the best under another reference, at least 0; of a rejected answer, which is asked about
    under no other reference, it is 0, or that could be paid more than an accepted one.
    """
    scores = context.probabilities.flat
    accepted = (scores > 0.5) & context.silent.flat
    worth = (scores - near.maximum(scores_when_swapped(context).flat)).clamp(min=0).where(accepted, 0.0)
    kept = accepted & (near > 0.5)
    return worth, float(kept.sum() / accepted.sum().clamp(min=1))


def newer(before: Sequence[float], now: Sequence[float]) -> list[float]:
    """Verdicts of a class, and the accepted ones of these, after a step that adds `now` to those `before`.

    Older verdicts fill up the step's to `MEMORY`, or count as much as those if that is more. A step without verdicts of
    the class changes nothing.
    """
    share = 1.0
    if before[0] and now[0]:
        share = min(1.0, max(now[0], MEMORY - now[0]) / before[0])
    return [new + share * old for old, new in zip(before, now, strict=True)]


def _of_solutions(contexts: Sequence[StepContext]) -> list[float]:
    """The counts of the reference solutions of a step's groups as answers: right ones, and wrong ones under the
    reference of another problem."""
    counts = [0.0] * 4
    for context in contexts:
        if not context.learns_from_solutions:
            continue
        own = [[group.problem.solution] if group.problem.solution else [] for group in context.groups]
        references = [group.problem.answer for part in contexts for group in part.groups]
        others = [other_reference(group.problem, references) for group in context.groups]
        wrong = [texts if other is not None else [] for texts, other in zip(own, others, strict=True)]
        given = [other or group.problem.answer for other, group in zip(others, context.groups, strict=True)]
        for place, name, texts, read in ((0, "own solution", own, None), (2, "swapped solution", wrong, given)):
            accepts = context.logits_of(name, texts, read).flat > 0
            counts[place] += len(accepts)
            counts[place + 1] += int(accepts.sum())
    return counts


def earned_weight(counts: Sequence[float]) -> float:
    """max(0, J) ^ POWER, with J = accepted / (correct + 1) - (accepted + 1) / (wrong + 1).

    `counts` are rule-correct completions, those of them that the model accepts, rule-wrong ones, and those of them that
    it accepts. One more of each counts as a mistake of the model.
    """
    correct, accepted_correct, wrong, accepted_wrong = counts
    return max(0.0, accepted_correct / (correct + 1) - (accepted_wrong + 1) / (wrong + 1)) ** POWER
