"""One number for every answer of a step, however many answers each problem has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor


@dataclass(frozen=True)
class Ragged:
    """`flat` holds the numbers of all groups one behind the other; `sizes` says how many belong to each of P groups."""

    flat: Shaped[Tensor, " B"]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.flat.ndim != 1 or len(self.flat) != sum(self.sizes):
            raise ValueError(f"{tuple(self.flat.shape)} numbers for groups of {self.sizes}")

    @classmethod
    def of(cls, rows: Sequence[Sequence[float] | Tensor], dtype: torch.dtype | None = None) -> Self:
        """From one row of numbers a group."""
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
        """The groups that are `chosen`."""
        sizes = tuple(size for size, keep in zip(self.sizes, chosen.tolist(), strict=True) if keep)
        return Ragged(self.flat[self.expand(chosen)], sizes)

    def expand(self, of_groups: Shaped[Tensor, " P"]) -> Shaped[Tensor, " B"]:
        """Each group's number, once for each of its answers."""
        return of_groups.repeat_interleave(self.counts(), output_size=len(self.flat))

    def counts(self) -> Int[Tensor, " P"]:
        """How many answers each group has."""
        return torch.tensor(self.sizes, dtype=torch.long, device=self.flat.device)

    def mean(self) -> Float[Tensor, " P"]:
        """The mean of each group. Of an empty group this, as the three below, is NaN."""
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
        """One number a group. Groups of one size are reduced together, so that a step of such groups is one call."""
        result = self.flat.new_full((len(self.sizes),), float("nan"))
        sizes = self.counts()
        for size in sorted(set(self.sizes) - {0}):
            same = sizes == size
            result[same] = reduce(self.flat[self.expand(same)].reshape(-1, size))
        return result

    def padded(self, fill: float) -> Shaped[Tensor, "P N"]:
        """Groups as rows, padded with `fill` behind the smaller ones."""
        if self.uniform:
            return self.flat.reshape(len(self.sizes), self.sizes[0] if self.sizes else 0)
        return torch.nn.utils.rnn.pad_sequence(list(self.groups()), batch_first=True, padding_value=fill)
