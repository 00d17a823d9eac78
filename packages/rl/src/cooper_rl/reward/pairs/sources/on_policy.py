"""On-policy negatives: the policy's own wrong completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from math import inf, isfinite
from random import Random
from typing import TYPE_CHECKING, Literal

from cooper_base.data.answer import Answer
from cooper_base.data.labelled import LabelledCompletion
from cooper_base.data.text import has_content, normalise
from cooper_rl.reward.health import Unread, suspected
from cooper_rl.reward.pairs.base import (
    PAIRS,
    MadePairs,
    PairGroup,
    PairInputs,
    PairSource,
    PairSourceConfig,
    valid_rate,
)
from cooper_verify.rules.other_answers import gives_several

if TYPE_CHECKING:
    from cooper_rl.reward.context import StepContext

Marks = Sequence[Sequence[bool]] | None
"""A mark for each answer of each group of a context."""


class WrongCompletions(PairSourceConfig):
    """Which of the policy's own completions are taken as wrong.

    The rule's verdict is their only label. If the rule misses right answers, some of these negatives are in fact right,
    and taking the highest-scored first finds exactly those. Prefer `order: random` if the rule often says `wrong` of
    right answers.
    """

    order: Literal["hardest", "random"] = "hardest"
    """`hardest` takes the completions that the reward model scores highest, because these show how it is hacked;
    `random` takes any."""
    unread: tuple[Unread, ...] = ("several_answers", "cut_off", "keeps_score")
    """Grounds on which a completion counts as wrong that the rule does not judge, because it cannot read it or is
    silent on its problem. It gives more answers than the reference has (`several_answers`), was cut at the length limit
    (`cut_off`), is accepted under the reference of another problem of the step too, where that is a different answer
    (`keeps_score`), scores higher than the data set's solution (`above_solution`), or has no answer that the rule finds
    (`unparsed`, which also takes right answers of unusual form). One without any letter or digit is always wrong."""

    def trusted(self, context: StepContext) -> Marks:
        """Answers that are never taken as wrong, whatever the rule says; None if there are none."""
        return None

    def choose(
        self, groups: Sequence[PairGroup], context: StepContext, count: int, random: str
    ) -> Mapping[str, list[str]]:
        """Up to `count` different wrong completions of each group, by the group's id."""
        ids = [group.id for group in context.groups]

        def by_group(marks: Marks) -> Mapping[str, Sequence[bool]]:
            return {} if marks is None else dict(zip(ids, marks, strict=True))

        suspects, trusted = by_group(suspected(context, self.unread)), by_group(self.trusted(context))
        return {
            group.id: choose_wrong(
                group, count, self, group.random(random), suspects.get(group.id), trusted.get(group.id)
            )
            for group in groups
        }


@PAIRS.register
class OnPolicyPairs(WrongCompletions):
    """Pairs of a positive and a wrong completion of the same group."""

    kind: Literal["on_policy"] = "on_policy"

    def build(self, inputs: PairInputs) -> OnPolicySource:
        return OnPolicySource(self, inputs.config.pairs_per_problem)


class OnPolicySource(PairSource):
    """Makes pairs of every group with a positive. Of other groups, wrong completions are learned from alone."""

    def __init__(self, config: WrongCompletions, count: int) -> None:
        self._config, self._count = config, count

    def start(self, groups: Sequence[PairGroup], context: StepContext) -> Mapping[str, list[str]]:
        return self._config.choose(groups, context, self._count, "pairs")

    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Mapping[str, list[str]]]) -> MadePairs:
        wrong = {id: texts for chosen in started for id, texts in chosen.items()}
        pairs = [
            group.pair(positive, negative, "on_policy")
            for group in groups
            for positive, negative in zip(cycle(group.positives), wrong[group.id], strict=False)
        ]
        unpaired = [
            LabelledCompletion(group.problem.question, group.problem.answer, text, 0.0)
            for group in groups
            if not group.positives
            for text in wrong[group.id]
        ]
        return MadePairs(pairs, valid_rate("on_policy", pairs, groups, self._count), unpaired)


def choose_wrong(
    group: PairGroup,
    count: int,
    config: WrongCompletions,
    rng: Random,
    suspects: Sequence[bool] | None = None,
    trusted: Sequence[bool] | None = None,
) -> list[str]:
    """Up to `count` different wrong completions of a group, normalised.

    Completions that stopped on their own come first. Those cut at the length limit come last, because they would teach
    "unfinished is wrong" rather than "wrong is wrong". Within each kind, `config.order` decides. A text is never a
    negative if it is also a positive, if the rule accepts it anywhere in the group, or if it is `trusted`. One that the
    rule does not judge is a negative if it is among the `suspects`.
    """
    several_in: dict[str, bool] = {}
    if "several_answers" in config.unread:
        with_verdicts = zip(group.group.answers, group.verdicts, strict=True)
        unjudged = [answer.text for answer, verdict in with_verdicts if verdict in ("unparsed", "silent")]
        several_in = dict(zip(unjudged, gives_several(unjudged, group.problem.answer), strict=True))

    def is_wrong(answer: Answer, verdict: str, suspect: bool) -> bool:
        if verdict in ("unparsed", "silent"):
            several = several_in.get(answer.text, False)
            cut_off = "cut_off" in config.unread and not answer.stopped
            unparsed = "unparsed" in config.unread and verdict == "unparsed"
            return several or cut_off or unparsed or suspect or not has_content(normalise(answer.transcript))
        return verdict == "wrong"

    none = [False] * len(group.texts)
    marks = (trusted or none, suspects or none)
    rows = list(zip(group.group.answers, group.texts, group.verdicts, group.logits, *marks, strict=True))
    excluded = {*group.positives, *(text for _, text, verdict, _, trust, _ in rows if verdict == "correct" or trust)}
    if config.order == "random":
        rng.shuffle(rows)
    else:
        rows.sort(key=lambda row: -row[3] if isfinite(row[3]) else inf)
    rows.sort(key=lambda row: not row[0].stopped)  # stable sort: keeps the order within each kind
    texts = [text for answer, text, verdict, _, _, suspect in rows if is_wrong(answer, verdict, suspect)]
    return [text for text in dict.fromkeys(texts) if text not in excluded][:count]
