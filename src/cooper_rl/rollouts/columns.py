"""Rows of unequal length in two flat arrays."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
from jaxtyping import Int, Shaped


@dataclass(frozen=True)
class Column:
    """Rows of numbers: row i is `values[offsets[i] : offsets[i + 1]]`. A row is a view, not a copy."""

    values: Shaped[np.ndarray, " numbers"]
    offsets: Int[np.ndarray, " rows+1"]

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any] | np.ndarray], dtype: Any = np.int32) -> Self:
        """A column with these rows, in `dtype`."""
        if any(isinstance(row, np.ndarray) for row in rows):
            values = np.concatenate(rows).astype(dtype, copy=False) if len(rows) else np.empty(0, dtype)
        else:
            values = np.fromiter(chain.from_iterable(rows), dtype, sum(map(len, rows)))
        return cls(values, offsets_of([len(row) for row in rows]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        row %= len(self)
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[row] for row in range(len(self)))

    @property
    def lengths(self) -> Int[np.ndarray, " rows"]:
        """The length of each row."""
        return np.diff(self.offsets)

    def take(self, rows: Sequence[int] | Int[np.ndarray, " taken"]) -> Self:
        """A new column with the given rows, in that order."""
        return type(self)(self.values[self.places(rows)], offsets_of(self.lengths[rows]))

    def places(self, rows: Sequence[int] | Int[np.ndarray, " taken"]) -> Int[np.ndarray, " numbers"]:
        """The indices of the given rows' numbers in `values`, row by row."""
        rows = np.asarray(rows, dtype=np.int64)
        lengths = self.lengths[rows]
        ends = np.cumsum(lengths)
        # Counts up by one inside a row and jumps to the next row's start between rows.
        return np.arange(lengths.sum()) + np.repeat(self.offsets[rows] - ends + lengths, lengths)


def offsets_of(lengths: Sequence[int] | Int[np.ndarray, " rows"]) -> Int[np.ndarray, " rows+1"]:
    """The start of each row and the end of the last one."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
