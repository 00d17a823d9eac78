"""Signs of reward hacking that need no verdict, for answers on which the rule is silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import compress
from math import inf
from typing import TYPE_CHECKING, Literal
from zlib import crc32

from cooper_rl.engines.base import Metrics
from cooper_verify.rules.near_answers import near_answers
from cooper_verify.rules.other_answers import are_different, stated_answers

if TYPE_CHECKING:
    from cooper_base.data.answer import AnswerGroup
    from cooper_base.data.problem import Problem
    from cooper_rl.records import Ragged
    from cooper_rl.reward.context import StepContext

Unread = Literal["several_answers", "cut_off", "keeps_score", "above_solution", "unparsed"]
"""Grounds on which an unjudged completion counts as wrong."""

PROBED = 2
"""Accepted answers of a group that are scored again under another reference."""


def signs_without_verdict(context: StepContext) -> Metrics:
    """Of the groups that the rule judges (`_heard`) and of the others (`_silent`), if there are both or only others:

    - `rollout/agreement`: the mean share of a group's answers that state its most frequent answer. A policy that learns
      agrees with itself more and more. Filler that is written to please the reward model differs from answer to
      answer.
    - `reward_model/kept_when_swapped`: of up to `PROBED` accepted answers a group, the share that is accepted with the
      reference of another problem too. A reward model that compares rejects them. Left out where the model's input has
      no reference.
    """
    silent = [set(row) == {"silent"} for row in context.verdicts]
    heard = [bool(row) and not is_silent for row, is_silent in zip(context.verdicts, silent, strict=True)]
    if not any(silent):
        return {}
    metrics: Metrics = {}
    kept: Sequence[Sequence[bool]] = [[] for _ in silent]
    if context.model_reads_reference:
        accepted = [[place for place, logit in enumerate(row) if logit > 0] for row in context.logits.rows()]
        chosen = [places[:PROBED] for places in accepted]
        swapped = _logits_under(context, "swapped probed", chosen, _far_references(context, chosen))
        kept = [[logit > 0 for logit in row] for row in swapped]
    for where, marks in (("heard", heard), ("silent", silent)):  # an empty group is neither
        groups = list(compress(context.groups, marks))
        if groups:
            metrics[f"rollout/agreement_{where}"] = sum(map(agreement, groups)) / len(groups)
        probed = [is_kept for row in compress(kept, marks) for is_kept in row]
        if probed:
            metrics[f"reward_model/kept_when_swapped_{where}"] = sum(probed) / len(probed)
    return metrics


def agreement(group: AnswerGroup) -> float:
    """The share of a group's answers that state its most frequent answer, as text."""
    stated = Counter(stated_answers([answer.text for answer in group.answers]))
    return stated.most_common(1)[0][1] / len(group.answers)


def suspected(context: StepContext, reasons: Sequence[Unread]) -> Sequence[Sequence[bool]] | None:
    """The answers without a verdict whose scores say that they are wrong, for the `reasons` that look at scores.

    None if there is no such reason, or the step has no such answer.
    """
    unjudged = [[verdict in ("silent", "unparsed") for verdict in row] for row in context.verdicts]
    if not {"keeps_score", "above_solution"} & set(reasons) or not any(map(any, unjudged)):
        return None
    logits = context.logits.rows()
    suspects = [[False] * len(row) for row in unjudged]
    if "above_solution" in reasons:
        solutions = [
            [group.problem.solution] if group.problem.solution and any(row) else []
            for group, row in zip(context.groups, unjudged, strict=True)
        ]
        best_of = context.logits_of("own solution", solutions).rows()
        for row, answer_logits, best in zip(suspects, logits, best_of, strict=True):
            row[:] = [bool(best) and logit > best[0] for logit in answer_logits]
    if "keeps_score" in reasons:
        swapped = scores_when_swapped(context).rows()
        suspects = [
            [was or score > 0.5 for was, score in zip(*rows, strict=True)]
            for rows in zip(suspects, swapped, strict=True)
        ]
    return [[a and b for a, b in zip(*rows, strict=True)] for rows in zip(suspects, unjudged, strict=True)]


def scores_when_near(context: StepContext) -> Ragged:
    """The reward model's score of each answer under a reference near to its problem's (`near_answers`), in [0, 1].

    It is asked of the answers without a verdict that the model accepts. It is 0 of any other, of a group whose
    reference has no near answer, and if the model reads no reference. Which near answer it is depends on the answers of
    the group alone.
    """
    return _scores_under_others(context, "near", _accepted_unjudged(context), _near_references(context))


def scores_when_swapped(context: StepContext) -> Ragged:
    """The reward model's score of each answer under the reference of another problem of the step, in [0, 1].

    It is asked of the answers without a verdict that the model accepts, under the near reference too where there is
    one: what is rejected there is not asked again. It is 0 of any other, of a group for which no reference is a
    different answer, and if the model reads no reference.
    """
    near = scores_when_near(context).rows()
    asked = [
        [place for place in places if reference is None or row[place] > 0.5]
        for places, reference, row in zip(_accepted_unjudged(context), _near_references(context), near, strict=True)
    ]
    return _scores_under_others(context, "swapped unjudged", asked, _far_references(context, asked))


def _accepted_unjudged(context: StepContext) -> list[list[int]]:
    """The places of each group's answers without a verdict that the model accepts."""
    return [
        [place for place, logit in enumerate(row) if logit > 0 and said[place] in ("silent", "unparsed")]
        for row, said in zip(context.logits.rows(), context.verdicts, strict=True)
    ]


def _scores_under_others(
    context: StepContext, what: str, asked: Sequence[Sequence[int]], references: Sequence[str | None]
) -> Ragged:
    scores = [[-inf] * len(row) for row in context.verdicts]
    if any(asked) and context.model_reads_reference:
        for row, places, logits in zip(scores, asked, _logits_under(context, what, asked, references), strict=True):
            for place, logit in zip(places, logits, strict=False):
                row[place] = logit
    return context.ragged(context.logits.flat.new_tensor([logit for row in scores for logit in row]).sigmoid())


def _logits_under(
    context: StepContext, what: str, chosen: Sequence[Sequence[int]], references: Sequence[str | None]
) -> Sequence[Sequence[float]]:
    """The logits of the `chosen` answers of each group under another reference; no logits of a group for which there
    is none. The context keeps them under the name `what`.
    """
    texts, given = [], []
    for group, picked, other in zip(context.groups, chosen, references, strict=True):
        texts.append([] if other is None else [group.answers[index].transcript for index in picked])
        given.append(group.problem.answer if other is None else other)
    return context.logits_of(what, texts, given).rows() if any(texts) else [[] for _ in texts]


def _far_references(context: StepContext, chosen: Sequence[Sequence[int]]) -> list[str | None]:
    """The reference of another problem of the step for each group of which answers are `chosen`."""
    references = [group.problem.answer for part in (context, *context.others_of_step) for group in part.groups]
    return [
        other_reference(group.problem, references) if picked else None
        for group, picked in zip(context.groups, chosen, strict=True)
    ]


def _near_references(context: StepContext) -> list[str | None]:
    """A reference near to each group's own, drawn by its answers."""

    def draw() -> list[str | None]:
        return [
            min(near, key=lambda other: (_mixed(group.problem.id, group.answers[0].transcript, other), other))
            if near and group.answers
            else None
            for group, near in zip(
                context.groups, near_answers([group.problem.answer for group in context.groups]), strict=True
            )
        ]

    return context.once("near references", draw)


def other_reference(problem: Problem, references: Sequence[str]) -> str | None:
    """A different answer among these; None if there is none for sure. It does not depend on their order."""
    mixed = sorted(set(references), key=lambda other: (_mixed(problem.id, other), other))
    return next((other for other in mixed if are_different(problem.answer, other)), None)


def _mixed(*texts: str) -> int:
    """A number by which texts are in an order that has nothing to do with what they say."""
    return crc32(" ".join(texts).encode())
