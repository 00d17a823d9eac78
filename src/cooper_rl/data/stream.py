"""Batches of problems over many epochs, resumable at any batch."""

from collections.abc import Sequence
from hashlib import sha256
from random import Random
from typing import Any

from cooper_rl.data.problem import Problem
from cooper_rl.errors import InputError


class ProblemStream:
    """An endless stream of batches, in an order that depends only on the problems, `batch_size` and `seed`.

    Every epoch holds each problem once, freshly shuffled. A batch may span two epochs. Raises InputError for fewer
    problems than `batch_size`.
    """

    def __init__(self, problems: Sequence[Problem], batch_size: int, seed: int):
        if not 0 < batch_size <= len(problems):
            raise InputError(
                f"problems_per_step: {batch_size} problems cannot be drawn from {len(problems)} without repeating one; "
                "lower problems_per_step or add problems"
            )
        self._problems = list(problems)
        self._by_id = {problem.id: problem for problem in self._problems}
        self._batch_size = batch_size
        self._seed = seed
        self._start()

    def _start(self) -> None:
        self.epoch = self._position = 0
        self._order = self._shuffled()

    def next_batch(self) -> list[Problem]:
        """The next `batch_size` problems, all different."""
        taken = self._order[self._position : self._position + self._batch_size]
        self._position += len(taken)
        if len(taken) < self._batch_size:
            self._next_epoch()
            self._position = self._batch_size - len(taken)
            taken = taken + self._order[: self._position]
        return [self._problems[index] for index in taken]

    def problem(self, id: str) -> Problem:
        return self._by_id[id]

    @property
    def first(self) -> Problem:
        """The first problem of the current epoch."""
        return self._problems[self._order[0]]

    def _shuffled(self) -> list[int]:
        order = list(range(len(self._problems)))
        # `random` hashes a text seed, so the orders of neighbouring seeds and epochs are unrelated.
        Random(f"{self._seed}/{self.epoch}").shuffle(order)
        return order

    def _next_epoch(self) -> None:
        """Start an epoch. If a batch spans both epochs, its problems from the old one do not come back within it."""
        remainder = len(self._order) * (self.epoch + 1) % self._batch_size
        held_back = set(self._order[len(self._order) - remainder :])
        self.epoch += 1
        fresh = self._shuffled()
        needed = self._batch_size - remainder
        head = [index for index in fresh if index not in held_back][:needed]
        in_head = set(head)
        self._order = head + [index for index in fresh if index not in in_head]

    def state(self) -> dict[str, Any]:
        """The stream's position as JSON values, for `restore`."""
        return self._identity() | {"epoch": self.epoch, "position": self._position}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue after the batch at which `state` was taken. Raises InputError for a state of another stream."""
        for name, value in self._identity().items():
            if state.get(name) != value:
                setting = name.replace("batch_size", "problems_per_step")
                raise InputError(
                    f"the checkpoint's data cursor has {setting} {state.get(name)}, this run has {value}; "
                    "resume with the problems, problems_per_step and seed that the run started with"
                )
        self._start()
        while self.epoch < state["epoch"]:
            self._next_epoch()
        self._position = state["position"]

    def _identity(self) -> dict[str, Any]:
        names = "\n".join(problem.id for problem in self._problems)
        digest = sha256(names.encode()).hexdigest()
        return {"problems": digest, "batch_size": self._batch_size, "seed": self._seed}
