"""A reward model's logits of a benchmark's completions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cooper_lab.benchmarks.candidates import Candidates
from cooper_rl import InputError

if TYPE_CHECKING:
    from cooper_rl.reward.context import RewardModel

CHUNK = 16
"""Problems scored between two reports of progress."""


def logits_of(
    model: RewardModel, items: Sequence[Candidates], progress: Callable[[int, int], None]
) -> list[list[float]]:
    """The logit of every completion of every problem. Raises InputError naming the row whose question leaves no room
    for a completion."""
    scores: list[list[float]] = []
    for start in range(0, len(items), CHUNK):
        chunk = items[start : start + CHUNK]
        rows = [_encoded(model, item, completion) for item in chunk for completion in item.completions]
        logits = iter(model.learner.score(rows).tolist())
        scores += [[next(logits) for _ in item.completions] for item in chunk]
        progress(len(scores), len(items))
    return scores


def _encoded(model: RewardModel, item: Candidates, completion: str) -> list[int]:
    try:
        return model.encoder.encode(item.question, item.reference, completion)
    except InputError as error:
        raise InputError(f"{item.location}: {error}") from error
