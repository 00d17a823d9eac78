"""One number per answer of a step. Problems may have different numbers of answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor


@dataclass(frozen=True)
class Ragged:
    """`flat` holds the numbers of all groups, one group after another. `sizes` holds the size of each of P groups."""

    flat: Shaped[Tensor, " B"]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.flat.ndim != 1 or len(self.flat) != sum(self.sizes):
            raise ValueError(f"numbers of shape {tuple(self.flat.shape)} do not fit groups of sizes {self.sizes}")

    @classmethod
    def of(cls, rows: Sequence[Sequence[float] | Tensor], dtype: torch.dtype | None = None) -> Self:
        """From one row of numbers per group."""
        flat = [torch.as_tensor(row, dtype=dtype) for row in rows]
        return cls(torch.cat(flat) if flat else torch.zeros(0, dtype=dtype), tuple(len(row) for row in flat))

    def like(self, flat: Shaped[Tensor, " B"]) -> "Ragged":
        """Other numbers for the same answers."""
        return Ragged(flat, self.sizes)

    def groups(self) -> tuple[Shaped[Tensor, " n"], ...]:
        """The numbers of each group."""
        return self.flat.split(self.sizes)

    def rows(self) -> list[list[float]]:
        """The numbers of each group as Python numbers."""
        return [group.tolist() for group in self.groups()]

    @property
    def uniform(self) -> bool:
        """Whether all groups have the same size."""
        return len(set(self.sizes)) <= 1

    def select(self, chosen: Bool[Tensor, " P"]) -> "Ragged":
        """Only the groups where `chosen` is true."""
        sizes = tuple(size for size, keep in zip(self.sizes, chosen.tolist(), strict=True) if keep)
        return Ragged(self.flat[self.expand(chosen)], sizes)

    def expand(self, of_groups: Shaped[Tensor, " P"]) -> Shaped[Tensor, " B"]:
        """Each group's number, repeated for each of its answers."""
        return of_groups.repeat_interleave(self.counts(), output_size=len(self.flat))

    def counts(self) -> Int[Tensor, " P"]:
        """The number of answers in each group."""
        return torch.tensor(self.sizes, dtype=torch.long, device=self.flat.device)

    def mean(self) -> Float[Tensor, " P"]:
        """The mean of each group; NaN for an empty group, as in `std`, `amin` and `amax`."""
        return self._of_each(lambda rows: rows.mean(dim=1))

    def std(self) -> Float[Tensor, " P"]:
        """The standard deviation of each group, with N - 1 in the denominator; NaN for a group of one."""
        return self._of_each(lambda rows: rows.std(dim=1))

    def amin(self) -> Float[Tensor, " P"]:
        """The smallest number of each group."""
        return self._of_each(lambda rows: rows.amin(dim=1))

    def amax(self) -> Float[Tensor, " P"]:
        """The largest number of each group."""
        return self._of_each(lambda rows: rows.amax(dim=1))

    def _of_each(self, reduce: Callable[[Float[Tensor, "p n"]], Float[Tensor, " p"]]) -> Float[Tensor, " P"]:
        """One number per group. Groups of equal size share one call of `reduce`."""
        result = self.flat.new_full((len(self.sizes),), float("nan"))
        sizes = self.counts()
        for size in sorted(set(self.sizes) - {0}):
            same = sizes == size
            result[same] = reduce(self.flat[self.expand(same)].reshape(-1, size))
        return result

    def padded(self, fill: float) -> Shaped[Tensor, "P N"]:
        """Groups as rows; smaller groups are padded with `fill` at the end."""
        if self.uniform:
            return self.flat.reshape(len(self.sizes), self.sizes[0] if self.sizes else 0)
        return torch.nn.utils.rnn.pad_sequence(list(self.groups()), batch_first=True, padding_value=fill)
