"""Swapped references: the positive itself under a reference answer that it does not match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from cooper_base.data.transcript import split_reply
from cooper_rl.reward.pairs.base import (
    PAIRS,
    MadePairs,
    Pair,
    PairGroup,
    PairInputs,
    PairSource,
    PairSourceConfig,
    valid_rate,
)
from cooper_verify.rules.near_answers import near_answers
from cooper_verify.rules.other_answers import are_unrelated
from cooper_verify.rules.rule import Rule


@PAIRS.register
class SwappedReferencePairs(PairSourceConfig):
    """Pairs that differ in the reference answer only."""

    writes_wrong_answers: ClassVar[bool] = True

    swaps_references: ClassVar[bool] = True
    kind: Literal["swapped_reference"] = "swapped_reference"

    def build(self, inputs: PairInputs) -> SwappedReferenceSource:
        return SwappedReferenceSource(inputs.rule, inputs.config.pairs_per_problem)


class SwappedReferenceSource(PairSource):
    """Makes up to `count` pairs of each group with a positive."""

    def __init__(self, rule: Rule, count: int) -> None:
        self._rule, self._count = rule, count

    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Any]) -> MadePairs:
        pairs = swapped_pairs([group for group in groups if group.positives], self._rule, self._count)
        return MadePairs(pairs, valid_rate("swapped_reference", pairs, groups, self._count))


OTHERS = 3
"""References of other problems that are tried for one pair, after as many near ones."""


def swapped_pairs(groups: Sequence[PairGroup], verifier: Rule, count: int) -> list[Pair]:
    """Up to `count` pairs per problem, one for each positive, that differ in the reference answer only.

    Contrast Instructions (Shen et al. 2023, arXiv 2309.16155) swaps the instruction under a response. A reference-based
    reward model reads a reference too, and a model that reads the text alone cannot tell these pairs apart.
    The negative is the positive under another reference: one near to the true one (`near_answers`) if there is any,
    else the reference of another of these problems. A reference is used only if the rule says that the positive is
    `wrong` under it, so it is never another form of the true answer. Where the rule is silent, a near one is used, or
    one of another problem that shares no word with the true one and is a different answer (`are_different`). A problem
    without a reference has no such pairs.
    """
    groups = [group for group in groups if group.problem.answer]
    answers = list(dict.fromkeys(group.problem.answer for group in groups))
    wanted: list[tuple[PairGroup, str, list[str]]] = []
    for group, near in zip(groups, near_answers([group.problem.answer for group in groups]), strict=True):
        others, random = [answer for answer in answers if answer != group.problem.answer], group.random("partners")
        for positive in group.positives[:count]:
            picked = random.sample(others, min(OTHERS, len(others)))
            wanted.append((group, positive, random.sample(near, min(OTHERS, len(near))) + picked))
    questions = [(group.problem, positive, answer) for group, positive, candidates in wanted for answer in candidates]
    verdicts = iter(
        verifier.verify_problems(
            [(replace(problem, answer=answer), split_reply(text)[1]) for problem, text, answer in questions]
        )
    )
    pairs: list[Pair] = []
    for group, positive, candidates in wanted:
        judged = [(answer, next(verdicts)) for answer in candidates]
        if wrong := [
            answer
            for answer, verdict in judged
            if verdict == "wrong"
            or (verdict == "silent" and (answer not in answers or are_unrelated(group.problem.answer, answer)))
        ]:
            pair = group.pair(positive, positive, "swapped_reference")
            pairs.append(replace(pair, negative_answer=wrong[0], negative_logit_before=None))
    return pairs
