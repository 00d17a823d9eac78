"""Signs of reward hacking that need no verdict, for answers on which the rule is silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cooper_rl.engines.base import Metrics
from cooper_rl.rules.extraction import extract_answer
from cooper_rl.rules.plain_text import plain_text

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rollouts import AnswerGroup

PROBED = 2
"""Accepted answers of a group that are scored again under another reference."""


def signs_without_verdict(context: StepContext) -> Metrics:
    """Of the groups that the rule judges (`_heard`) and of the others (`_silent`), if there are both or only others:

    - `rollout/agreement`: the mean share of a group's answers that state its most frequent answer. A policy that learns
      agrees with itself more and more; what stands behind an answer to please a reward model is never the same.
    - `reward_model/kept_when_swapped`: of up to `PROBED` accepted answers a group, the share that is accepted with the
      reference of another problem too. A reward model that compares rejects them.
    """
    silent = [set(row) == {"silent"} for row in context.verdicts]
    if not any(silent):
        return {}
    metrics: Metrics = {}
    kept = _kept_when_swapped(context) if context.model_names else [[] for _ in silent]
    for where, chosen in (("heard", False), ("silent", True)):
        groups = [group for group, own in zip(context.groups, silent, strict=True) if own == chosen]
        if groups:
            metrics[f"rollout/agreement_{where}"] = sum(map(agreement, groups)) / len(groups)
        probed = [one for row, own in zip(kept, silent, strict=True) if own == chosen for one in row]
        if probed:
            metrics[f"reward_model/kept_when_swapped_{where}"] = sum(probed) / len(probed)
    return metrics


def agreement(group: AnswerGroup) -> float:
    """The share of a group's answers that state its most frequent answer, as text."""
    stated = Counter(tuple(map(plain_text, extract_answer(answer.text).texts)) for answer in group.answers)
    return stated.most_common(1)[0][1] / len(group.answers)


def _kept_when_swapped(context: StepContext) -> Sequence[Sequence[bool]]:
    """For each group, whether its probed answers are accepted under the reference of another problem."""
    name = context.model_names[0]
    references = [group.problem.answer for group in context.groups]
    plain = list(map(plain_text, references))
    texts, swapped = [], []
    for place, (group, logits) in enumerate(zip(context.groups, context.logits(name).rows(), strict=True)):
        others = (references[(place + step) % len(plain)] for step in range(1, len(plain)))
        other = next((one for one in others if plain_text(one) != plain[place]), None)
        accepted = [answer.text for answer, logit in zip(group.answers, logits, strict=True) if logit > 0]
        texts.append([] if other is None else accepted[:PROBED])
        swapped.append(references[place] if other is None else other)
    if not any(texts):
        return texts
    return [[logit > 0 for logit in row] for row in context.logits_of(name, "swapped", texts, swapped).rows()]
