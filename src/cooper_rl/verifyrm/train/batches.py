"""Labelled completions as training batches: encoded, weighted by class, grouped by length."""

import logging
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cooper_rl.data.labelled import LabelledCompletion
from cooper_rl.engines.base import LabelledBatch
from cooper_rl.errors import InputError
from cooper_rl.rewards.model.input import RewardModelInput

logger = logging.getLogger(__name__)

_SORTED_BATCHES = 32
"""Rows are sorted by length within this many batches: little padding, and still a random order."""


@dataclass(frozen=True)
class EncodedRow:
    """A reward-model input with its label."""

    token_ids: list[int]
    label: float
    question: str


def encode_rows(encoder: RewardModelInput, rows: Sequence[LabelledCompletion]) -> list[EncodedRow]:
    """Encode rows; those whose question alone fills the input are left out and counted.

    Raises InputError where there are rows and none fits.
    """
    encoded: list[EncodedRow] = []
    left_out: list[str] = []
    for row in rows:
        try:
            encoded.append(
                EncodedRow(encoder.encode(row.question, row.answer, row.completion), row.label, row.question)
            )
        except InputError as error:
            left_out.append(f"{row.location}: {error}")
    if left_out:
        logger.warning("%d of %d rows do not fit and are left out; first: %s", len(left_out), len(rows), left_out[0])
    if rows and not encoded:
        raise InputError(f"no row fits; first: {left_out[0]}")
    return encoded


def batches(rows: Sequence[EncodedRow], batch_size: int, seed: int) -> Iterator[list[EncodedRow]]:
    """Batches without end: one shuffled pass after another."""
    order = random.Random(seed)
    while True:
        for batch in length_grouped_batches([len(row.token_ids) for row in rows], batch_size, order):
            yield [rows[i] for i in batch]


def labelled_batch(rows: Sequence[EncodedRow], weights: dict[float, float]) -> LabelledBatch:
    """A batch whose loss is the mean over its rows, each times the weight of its label."""
    return LabelledBatch(
        [row.token_ids for row in rows],
        [row.label for row in rows],
        [weights[row.label] / len(rows) for row in rows],
    )


def class_weights(labels: Sequence[float]) -> dict[float, float]:
    """A weight for each label, 1 on average over the rows, with the same sum over both classes.

    Raises InputError where a class is empty: nothing could be learnt.
    """
    right = sum(label > 0.5 for label in labels)
    wrong = len(labels) - right
    if not right or not wrong:
        raise InputError(
            f"{len(labels)} training rows, {right} right and {wrong} wrong: a reward model needs both; "
            "give more rows, or raise max_rows"
        )
    return {1.0: len(labels) / (2 * right), 0.0: len(labels) / (2 * wrong)}


def length_grouped_batches(lengths: Sequence[int], batch_size: int, order: random.Random) -> list[list[int]]:
    """Row indices in random batches of like length, each row exactly once; the last of a pool may be smaller."""
    rows = list(range(len(lengths)))
    order.shuffle(rows)
    pool = batch_size * _SORTED_BATCHES
    batches: list[list[int]] = []
    for start in range(0, len(rows), pool):
        alike = sorted(rows[start : start + pool], key=lambda row: lengths[row])
        batches += [alike[i : i + batch_size] for i in range(0, len(alike), batch_size)]
    order.shuffle(batches)
    return batches
