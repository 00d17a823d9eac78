"""Wrong answers come in kinds, and a reward model may favour one: what its average agreement says of that.

`youdens_j`, `shares_after` and `half_silent` are exact: a policy is its shares of kinds of answers, the right one
first, and policy gradient multiplies each share by exp(time * reward), the replicator equation. Let .80 of the right
answers be accepted, .20 of the usual wrong ones and .95 of a rare hack. Youden's J starts at .59, and yet the policy
ends wholly in the hack: what decides is whether the worst wrong kind is accepted less than right answers.

But the share p of right answers grows by p (1 - p) J, with the J of the answers that the policy writes now. So this J
turns negative just when p begins to fall, and a weight that is earned by it (`earned`) stops there, also where the rule
is silent, if the policy's wrong answers are of the same kinds there as where it judges. A weight earned by the worst
kind never starts. If the hack is written on silent problems alone, neither sees it.

`EarnedByWorst` is `earned` with the J of the worst wrong kind, for the arena.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from cooper_audit.statistics import wilson_interval
from cooper_lab.arena.hole import lists_answers
from cooper_lab.arithmetic.solutions import find_answer
from cooper_rl.reward.kinds.earned import POWER, EarnedConfig, EarnedReward

if TYPE_CHECKING:
    from collections.abc import Callable

    from cooper_rl.reward.context import StepContext

Shares = Sequence[float]
DECAY = 0.5
"""Decay of the counts of kinds from step to step."""
PARTS = 1000
"""Into so many parts `half_silent` divides the time; the weight is constant in each."""


def shares_after(shares: Shares, rewards: Shares, time: float) -> list[float]:
    """The shares of the kinds after `time` under policy gradient: proportional to share * exp(time * reward)."""
    largest = max(rewards)
    grown = [share * math.exp(time * (reward - largest)) for share, reward in zip(shares, rewards, strict=True)]
    return [share / sum(grown) for share in grown]


def youdens_j(shares: Shares, accepted: Shares) -> float:
    """How much more right answers, the first kind, are accepted than the average wrong answer of this policy."""
    wrong = sum(share * rate for share, rate in zip(shares[1:], accepted[1:], strict=True))
    return accepted[0] - wrong / sum(shares[1:])


def worst_margin(accepted: Shares) -> float:
    """How much more right answers are accepted than the wrong kind that is accepted most, however rare it is."""
    return accepted[0] - max(accepted[1:])


def half_silent(
    judged: Shares, silent: Shares, accepted: Shares, weigh: "Callable[[Shares], float]", time: float
) -> tuple[list[float], list[float]]:
    """The shares of the kinds after `time` under `earned`, where the rule judges and where it is silent.

    `weigh` gives the reward model's weight w from the shares where the rule judges. There w * accepted +
    (1 - w) * right pays, and w * accepted where it is silent. What is learned on one side does not reach the other.
    """
    for _ in range(PARTS):
        weight = weigh(judged)
        paid = [weight * rate + (1 - weight) * (kind == 0) for kind, rate in enumerate(accepted)]
        judged = shares_after(judged, paid, time / PARTS)
        silent = shares_after(silent, accepted, weight * time / PARTS)
    return list(judged), list(silent)


def shape_of(completion: str) -> str:
    """The form of the stated answer: numbers become 9 and words w, except `or`."""
    words = re.sub(r"\b(?!or\b)[A-Za-z]+", "w", find_answer(completion).text)
    return re.sub(r"\d+", "9", words)


def is_list(completion: str) -> str:
    """The favoured kind of a planted judge, and all others together: more than a run can know."""
    return str(lists_answers(completion))


KINDS = {"shape": shape_of, "list": is_list}


class EarnedByWorst(EarnedConfig):
    """As `earned`, with the lower of two weights: by the average wrong answer, and by the worst wrong kind.

    The worst kind is the one whose acceptance has the highest lower bound (Wilson, 95 %), so a kind of few answers says
    little.
    """

    kinds: Literal["shape", "list"] = "shape"
    """What makes two wrong answers one kind."""

    def build(self) -> "EarnedByWorstReward":
        return EarnedByWorstReward(self.kinds)


class EarnedByWorstReward(EarnedReward):
    def __init__(self, kinds: str) -> None:
        super().__init__()
        self._kind_of = KINDS[kinds]
        self._kinds: dict[str, list[float]] = {}
        """Decayed counts over finished steps: the wrong answers of each kind, and the accepted ones of these."""

    def commit(self, contexts: "Sequence[StepContext]") -> None:
        if contexts:
            self._kinds = self._kinds_with(contexts)
        super().commit(contexts)

    def state(self) -> list[Any]:
        return [*super().state(), self._kinds]

    def restore(self, state: list[Any]) -> None:
        super().restore(state[:-1])
        self._kinds = state[-1]

    def _weight(self, counts: Sequence[float], contexts: "Sequence[StepContext]") -> float:
        correct, accepted, _, _ = counts
        by_average = super()._weight(counts, contexts)
        if correct < 1:
            return by_average
        margin = accepted / correct - worst_acceptance(self._kinds_with(contexts).values())
        return min(by_average, max(0.0, margin) ** POWER)

    def _kinds_with(self, contexts: "Sequence[StepContext]") -> dict[str, list[float]]:
        counts = {kind: [DECAY * wrong, DECAY * accepted] for kind, (wrong, accepted) in self._kinds.items()}
        for context in contexts:
            texts = [answer.text for group in context.groups for answer in group.answers]
            verdicts = [verdict for row in context.verdicts for verdict in row]
            accepts = (context.probabilities.flat > 0.5).tolist()
            for text, verdict, accepted in zip(texts, verdicts, accepts, strict=True):
                if verdict == "wrong":
                    of_kind = counts.setdefault(self._kind_of(text), [0.0, 0.0])
                    of_kind[0] += 1
                    of_kind[1] += accepted
        return {kind: of_kind for kind, of_kind in counts.items() if of_kind[0] > 0.1}


def worst_acceptance(kinds: Iterable[Sequence[float]]) -> float:
    """The highest lower bound of the acceptance of a kind, from counts of its answers and of the accepted ones."""
    return max((wilson_interval(accepted / wrong, wrong)[0] for wrong, accepted in kinds if wrong > 0), default=0.0)
