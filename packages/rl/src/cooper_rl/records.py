"""A step's samples: texts for rules and rewards, columns of numbers for learners, one number per answer for both.

Importing this module does not import torch, because the reward's clients and the checks of a run's input use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.problem import Problem

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True)
class Ragged:
    """`flat` holds the numbers of all groups, one group after another. `sizes` holds the size of each of P groups.

    Of rewards, NaN says that there is no opinion on the answer, and the answer teaches nothing: see `opinions`.
    """

    flat: Shaped[Tensor, " B"]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.flat.ndim != 1 or len(self.flat) != sum(self.sizes):
            raise ValueError(f"numbers of shape {tuple(self.flat.shape)} do not fit groups of sizes {self.sizes}")

    @classmethod
    def of(cls, rows: Sequence[Sequence[float] | Tensor], dtype: torch.dtype | None = None) -> Self:
        """From one row of numbers per group."""
        import torch  # noqa: PLC0415 - answers and columns do without it

        flat = [torch.as_tensor(row, dtype=dtype) for row in rows]
        return cls(torch.cat(flat) if flat else torch.zeros(0, dtype=dtype), tuple(len(row) for row in flat))

    @classmethod
    def picked(cls, picks: Sequence[tuple[Ragged, int]]) -> Self:
        """From single groups of others. A pick is numbers and the index of one of their groups."""
        return cls.of([numbers.groups()[p] for numbers, p in picks])

    def like(self, flat: Shaped[Tensor, " B"]) -> Ragged:
        """Other numbers for the same answers."""
        return Ragged(flat, self.sizes)

    def groups(self) -> tuple[Shaped[Tensor, " n"], ...]:
        """The numbers of each group."""
        return self.flat.split(self.sizes)

    def rows(self) -> list[list[float]]:
        """The numbers of each group as Python numbers."""
        return [group.tolist() for group in self.groups()]

    def select(self, chosen: Bool[Tensor, " P"]) -> Ragged:
        """Only the groups where `chosen` is true."""
        sizes = tuple(size for size, keep in zip(self.sizes, chosen.tolist(), strict=True) if keep)
        return Ragged(self.flat[self.expand(chosen)], sizes)

    def keep(self, kept: Bool[Tensor, " B"]) -> Ragged:
        """Only the answers where `kept` is true, in as many groups, of which some may be empty."""
        return Ragged(self.flat[kept], tuple(int(group.sum()) for group in kept.split(self.sizes)))

    def opinions(self) -> Ragged:
        """The numbers without those that are NaN: of rewards, those of the answers on which there is an opinion."""
        missing = self.flat.isnan()
        return self.keep(~missing) if missing.any() else self

    def expand(self, of_groups: Shaped[Tensor, " P"]) -> Shaped[Tensor, " B"]:
        """Each group's number, repeated for each of its answers."""
        return of_groups.repeat_interleave(self.counts(), output_size=len(self.flat))

    def counts(self) -> Int[Tensor, " P"]:
        """The number of answers in each group."""
        import torch  # noqa: PLC0415

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


Summands = tuple[tuple[float, Ragged], ...]
"""The rewards that add up to the finished reward, each with its weight."""


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


@dataclass(frozen=True)
class Samples:
    """B completions, in the order of the prompts. Completions of the same prompt are adjacent.

    `token_ids` are exactly the sampled tokens, including the end-of-sequence token if it was sampled. `logprobs` has
    the log-probability (nats) of each token under the model at the sampling temperature (at 1 for greedy sampling, that
    is, temperature 0). Filters such as top-p do not affect them, so they are comparable to a learner's. `texts` are
    decoded without special tokens and end before a stop string.
    """

    token_ids: Column
    """B rows."""
    logprobs: Float[np.ndarray, " tokens"]
    stopped: Bool[np.ndarray, " B"]
    """False for a completion that was cut at the length limit."""
    texts: Sequence[str]
    trained: Bool[np.ndarray, " tokens"] | None = None
    """False at tokens that an environment wrote: they have no weight, and NaN as log-probability. None: all true."""
    runs: Sequence[Answer] | None = None
    """Completions of several turns as answers, with turns and verdicts. `texts` then holds the final replies."""

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def written(self) -> Bool[np.ndarray, " tokens"]:
        """Whether the model wrote the token."""
        return np.ones(len(self.logprobs), bool) if self.trained is None else self.trained

    @property
    def written_lengths(self) -> Int[np.ndarray, " B"]:
        """The number of tokens of each completion that the model wrote."""
        return np.diff(np.concatenate(([0], np.cumsum(self.written)))[self.token_ids.offsets])

    def answers(self) -> Iterator[Answer]:
        """Each completion as text."""
        answers = map(Answer, self.texts) if self.runs is None else self.runs
        for answer, ids, stopped, tokens in zip(
            answers, self.token_ids, self.stopped, self.written_lengths, strict=True
        ):
            yield replace(answer, stopped=bool(stopped), tokens=int(tokens), token_ids=ids)


@dataclass(frozen=True, kw_only=True)
class Rollouts(Samples):
    """B samples for P problems. Completions of the same problem are adjacent; groups may differ in size."""

    problems: Sequence[Problem]
    prompts: Column
    """P rows of token ids."""
    group_sizes: Int[np.ndarray, " P"]
    versions: Int[np.ndarray, " B"]
    """The version of the policy that sampled each completion."""

    @classmethod
    def of(
        cls, problems: Sequence[Problem], prompts: Sequence[Sequence[int]], samples: Samples, n: int, version: int
    ) -> Self:
        """`n` samples per problem, all from one version of the policy."""
        sizes, versions = np.full(len(problems), n), np.full(len(samples), version)
        of_groups = {"problems": problems, "prompts": Column.of(prompts), "group_sizes": sizes, "versions": versions}
        return cls(**vars(samples), **of_groups)

    def __post_init__(self) -> None:
        completions, problems = len(self.token_ids), len(self.problems)
        counts = {
            "stopped": (len(self.stopped), completions),
            "texts": (len(self.texts), completions),
            "versions": (len(self.versions), completions),
            "logprobs": (len(self.logprobs), len(self.token_ids.values)),
            "trained": (len(self.written), len(self.token_ids.values)),
            "runs": (completions if self.runs is None else len(self.runs), completions),
            "prompts": (len(self.prompts), problems),
            "group_sizes": (len(self.group_sizes), problems),
            "completions in groups": (int(self.group_sizes.sum()), completions),
        }
        for name, (actual, expected) in counts.items():
            if actual != expected:
                raise ValueError(f"rollouts have {actual} {name} but need {expected}")

    @property
    def offsets(self) -> Int[np.ndarray, " P+1"]:
        """The completions of problem p are `offsets[p]` up to, but not including, `offsets[p + 1]`."""
        return offsets_of(self.group_sizes)

    @property
    def problem_of(self) -> Int[np.ndarray, " B"]:
        """The index of each completion's problem."""
        return np.repeat(np.arange(len(self.problems)), self.group_sizes)

    def keep(self, kept: Bool[np.ndarray, " B"]) -> Self:
        """Only the completions where `kept` is true, in as many groups, of which some may be empty."""
        rows = np.flatnonzero(kept)
        tokens = self.token_ids.places(rows)
        return replace(
            self,
            token_ids=self.token_ids.take(rows),
            logprobs=self.logprobs[tokens],
            stopped=self.stopped[rows],
            texts=[self.texts[row] for row in rows.tolist()],
            trained=None if self.trained is None else self.trained[tokens],
            runs=None if self.runs is None else [self.runs[row] for row in rows.tolist()],
            group_sizes=np.bincount(self.problem_of[rows], minlength=len(self.problems)),
            versions=self.versions[rows],
        )

    def groups(self) -> list[AnswerGroup]:
        """The completions as texts, for rules and rewards. A group's id is the id of its problem."""
        answers = list(self.answers())
        return [
            AnswerGroup(problem.id, problem, answers[start:end])
            for problem, start, end in zip(self.problems, self.offsets[:-1], self.offsets[1:], strict=True)
        ]

    def sequences(self, rows: Sequence[int] | Int[np.ndarray, " taken"]) -> Column:
        """One row for each of the given completions: the prompt followed by the completion."""
        problem_of = self.problem_of
        parts = [part for row in rows for part in (self.prompts[problem_of[row]], self.token_ids[row])]
        joined = Column.of(parts, self.token_ids.values.dtype)
        return Column(joined.values, joined.offsets[::2])
