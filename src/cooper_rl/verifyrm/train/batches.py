"""Turns labelled completions into training batches: encoded, weighted by class, grouped by length."""

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
"""Rows are sorted by length within this many batches, which saves padding and keeps the order almost random."""


@dataclass(frozen=True)
class EncodedRow:
    """A reward-model input with its label."""

    token_ids: list[int]
    label: float
    question: str


def encode_rows(encoder: RewardModelInput, rows: Sequence[LabelledCompletion]) -> list[EncodedRow]:
    """Encode rows. Rows whose question alone fills the input are left out, and their number is logged.

    Raises InputError if there are rows but none fits.
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
        raise InputError(f"none of the rows fits; first: {left_out[0]}")
    return encoded


def batches(rows: Sequence[EncodedRow], batch_size: int, seed: int) -> Iterator[list[EncodedRow]]:
    """An endless stream of batches: one shuffled pass over the rows after another."""
    order = random.Random(seed)
    while True:
        for batch in length_grouped_batches([len(row.token_ids) for row in rows], batch_size, order):
            yield [rows[i] for i in batch]


def labelled_batch(rows: Sequence[EncodedRow], weights: dict[float, float]) -> LabelledBatch:
    """A batch whose loss is the mean over its rows, with each row weighted by its label."""
    return LabelledBatch(
        [row.token_ids for row in rows],
        [row.label for row in rows],
        [weights[row.label] / len(rows) for row in rows],
    )


def class_weights(labels: Sequence[float]) -> dict[float, float]:
    """A weight for each label. Over the rows the weights average 1, and both classes have the same sum.

    Raises InputError if a class is empty, because nothing could be learned.
    """
    right = sum(label > 0.5 for label in labels)
    wrong = len(labels) - right
    if not right or not wrong:
        raise InputError(
            f"of {len(labels)} training rows {right} are right and {wrong} wrong, but a reward model needs both; "
            "give more rows, or raise max_rows"
        )
    return {1.0: len(labels) / (2 * right), 0.0: len(labels) / (2 * wrong)}


def length_grouped_batches(lengths: Sequence[int], batch_size: int, order: random.Random) -> list[list[int]]:
    """Row indices in random batches of similar length, each exactly once. The last batch of a pool may be smaller."""
    rows = list(range(len(lengths)))
    order.shuffle(rows)
    pool = batch_size * _SORTED_BATCHES
    batches: list[list[int]] = []
    for start in range(0, len(rows), pool):
        alike = sorted(rows[start : start + pool], key=lambda row: lengths[row])
        batches += [alike[i : i + batch_size] for i in range(0, len(alike), batch_size)]
    order.shuffle(batches)
    return batches
