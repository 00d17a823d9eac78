"""Unfinished completions, in arrays."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from jaxtyping import Float, Int

from cooper_rl.engines.local.stops import StopRule
from cooper_rl.rollouts import Column, Samples


class Drafts:
    """B completions. Completion i is sample `sample[i]` of prompt `prompt[i]` and has at most `limit[i]` tokens.

    Token t of a completion is in column t. The arrays are as wide as the largest limit, but the operating system gives
    them memory only where something is written.
    """

    def __init__(self, prompt: Int[np.ndarray, " B"], sample: Int[np.ndarray, " B"], limit: Int[np.ndarray, " B"]):
        self.prompt, self.sample, self.limit = prompt, sample, limit
        shape = (len(prompt), int(limit.max(initial=0)))
        self._token_ids = np.zeros(shape, np.int32)
        self._logprobs = np.zeros(shape, np.float32)
        self._lengths = np.zeros(len(prompt), np.int64)
        self._stopped = np.zeros(len(prompt), bool)

    @classmethod
    def of(cls, limits: Sequence[int], n: int, prompts: range) -> Self:
        """`n` drafts for each of these prompts; `limits` are those of all."""
        chosen = np.array(prompts, int)
        return cls(
            np.repeat(chosen, n), np.tile(np.arange(n), len(chosen)), np.repeat(np.array(limits, int)[chosen], n)
        )

    def __len__(self) -> int:
        return len(self.prompt)

    def open(self, rows: Int[np.ndarray, " R"]) -> np.ndarray:
        """Whether each of these completions goes on."""
        return ~self._stopped[rows] & (self._lengths[rows] < self.limit[rows])

    def extend(
        self,
        rows: Int[np.ndarray, " R"],
        token_ids: Int[np.ndarray, " R"],
        logprobs: Float[np.ndarray, " R"],
        rule: StopRule,
    ) -> None:
        """Append a token to each of these completions that still goes on, and stop those that end with it."""
        going = self.open(rows)
        rows, token_ids, logprobs = rows[going], token_ids[going], logprobs[going]
        places = self._lengths[rows]
        self._token_ids[rows, places] = token_ids
        self._logprobs[rows, places] = logprobs
        self._lengths[rows] += 1
        stopped = rule.stop_at(token_ids)
        for i in np.flatnonzero(rule.may_end_a_text(token_ids) & ~stopped):
            stopped[i] = rule.ends_a_text(self._token_ids[rows[i], : places[i] + 1])
        self._stopped[rows] = stopped

    def samples(self, rule: StopRule) -> Samples:
        """All completions, with the tokens drawn so far."""
        drawn = [row[:length] for row, length in zip(self._token_ids, self._lengths, strict=True)]
        logprobs = [row[:length] for row, length in zip(self._logprobs, self._lengths, strict=True)]
        return Samples(
            token_ids=Column.of(drawn),
            logprobs=Column.of(logprobs, np.float32).values,
            stopped=self._stopped,
            texts=rule.texts(drawn),
        )
