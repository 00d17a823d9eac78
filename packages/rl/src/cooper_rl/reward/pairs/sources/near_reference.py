"""Near references: a completion under the answer that it states, and under one near to that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from cooper_base.data.transcript import split_reply
from cooper_rl.reward.pairs.base import PAIRS, MadePairs, PairGroup, PairInputs, PairSource, PairSourceConfig
from cooper_verify.rules.near_answers import stated_with_near

if TYPE_CHECKING:
    from cooper_rl.reward.context import StepContext


@PAIRS.register
class NearReferencePairs(PairSourceConfig):
    """Pairs that differ in the reference answer only, and need neither a verdict nor the problem's own reference.

    A completion is right under the answer that it states itself and wrong under any other. Of each group, the
    completion that the reward model scores highest is read so, and under one of the answers nearest to its own
    (`28,000` for `28`): the reward model learns to compare where the rule is silent too. There are none where the
    reward model reads no reference, and of a completion that states no answer, or several, or one to which nothing near
    is another for sure. A group has one such pair, which counts as much as `pairs_per_problem` of another source.
    """

    writes_wrong_answers: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False

    kind: Literal["near_reference"] = "near_reference"

    def build(self, inputs: PairInputs) -> NearReferenceSource:
        return NearReferenceSource(inputs.config.pairs_per_problem)


class NearReferenceSource(PairSource):
    """Makes at most one pair of each group, of this weight."""

    def __init__(self, weight: float) -> None:
        self._weight = float(weight)

    def start(self, groups: Sequence[PairGroup], context: StepContext) -> Mapping[str, list[str]]:
        """By the group's id, the completion of the highest score, the answer that it states and those near to it."""
        if not context.model_reads_reference:
            return {}
        best = {group.id: text for group in groups if (text := highest_scored(group))}
        stated = stated_with_near([split_reply(text)[1] for text in best.values()])
        return {id: [text, *answers] for (id, text), answers in zip(best.items(), stated, strict=True)}

    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Mapping[str, list[str]]]) -> MadePairs:
        read = {id: row for of_call in started for id, row in of_call.items()}
        pairs = []
        for group in groups:
            text, *answers = read.get(group.id, [""])
            if len(answers) > 1:
                other = group.random("near").choice(answers[1:])
                pair = group.pair(text, text, "near_reference", "rollout")
                pair = replace(pair, answer=answers[0], negative_answer=other, weight=self._weight)
                # The known logit is of the text under the problem's own reference, which neither side is read with.
                pairs.append(replace(pair, positive_logit_before=None, negative_logit_before=None))
        return MadePairs(pairs, {"pairs/near_reference_valid_rate": len(pairs) / len(groups)} if groups else {})


def highest_scored(group: PairGroup) -> str | None:
    """The normalised completion of the highest score among those that ended on their own; None if there is none."""
    rows = zip(group.group.answers, group.texts, group.logits, strict=True)
    return max(((logit, text) for answer, text, logit in rows if answer.stopped), default=(0.0, None))[1]
