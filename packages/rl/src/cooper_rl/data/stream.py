"""Batches of problems over many epochs, from one set or several, resumable at any batch."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from random import Random
from typing import Any

from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_verify.problems.config import CurriculumConfig


class ProblemStream:
    """An endless stream of batches, in an order that depends only on the problems, the settings and what it is told.

    Every epoch of a set holds each of its problems once, freshly shuffled or in the order of the `curriculum`. A batch
    may span two epochs. Of several sets (`Problem.set`) each gets its share of the groups: by `weights`, or else by its
    number of problems. Raises InputError for fewer problems than a batch needs.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        batch_size: int,
        seed: int,
        weights: Mapping[str, float] | None = None,
        curriculum: CurriculumConfig | None = None,
    ):
        if not 0 < batch_size <= len(problems):
            raise InputError(
                f"problems_per_step: {batch_size} problems cannot be drawn from {len(problems)} without repeating one; "
                "lower problems_per_step or add problems"
            )
        self._by_id = {problem.id: problem for problem in problems}
        self._names, self._batch_size, self._seed = [problem.id for problem in problems], batch_size, seed
        by_set: dict[str, list[Problem]] = {name: [] for name in weights or {}}
        for problem in problems:
            by_set.setdefault(problem.set if weights else "", []).append(problem)
        self._sets = [_Epochs(some, batch_size, seed, name, curriculum) for name, some in by_set.items()]
        total = sum((weights or {"": 1.0}).values())
        self._shares = [(weights or {"": 1.0})[name] / total for name in by_set]
        for (name, some), share in zip(by_set.items(), self._shares, strict=True):
            if share * batch_size > len(some):
                raise InputError(
                    f"more_problems: {name or 'problems'} has {len(some)} problems, but its weight asks for "
                    f"{share * batch_size:.1f} of the {batch_size} in a step; lower its weight or add problems"
                )
        self._drawn = [0] * len(self._sets)
        """Problems of each set in all batches. Further problems of a step are not counted: they are replacements."""
        self._start_step()

    def _start_step(self) -> None:
        self._in_step: list[set[int]] = [set() for _ in self._sets]
        self._flat = [0] * len(self._sets)
        """Groups of each set that taught nothing in this step and have not been replaced."""

    def next_batch(self) -> list[Problem]:
        """The problems of the next step, `batch_size` of them, all different."""
        self._start_step()
        turns: list[int] = []  # the set that is farthest behind its share comes next
        for _ in range(self._batch_size):
            turns.append(self._farthest_behind(self._with_room(turns), self._drawn))
            self._drawn[turns[-1]] += 1
        return self._take(turns)

    def more(self, count: int) -> list[Problem]:
        """Up to `count` further problems for the same step, all new to it.

        They come from the sets whose groups taught nothing, so that what a step learns from has the sets' shares. Where
        such a set has no further problems the others take its place, by their shares; it gets no more in later steps.
        """
        turns: list[int] = []
        for _ in range(count):
            if not (room := self._with_room(turns)):
                break
            wanted = [i for i in room if self._flat[i]]
            in_step = [len(used) + turns.count(i) for i, used in enumerate(self._in_step)]
            turns.append(self._farthest_behind(wanted or room, in_step))
            self._flat[turns[-1]] -= bool(wanted)
        return self._take(turns)

    def tell(self, rates: Mapping[str, float], taught: Mapping[str, bool]) -> None:
        """By problem, the mean reward of its group and whether the group had a spread to learn from."""
        for i, problem_set in enumerate(self._sets):
            problem_set.tell(rates, taught)
            self._flat[i] += sum(not taught.get(problem_set.problems[index].id, True) for index in self._in_step[i])

    def _with_room(self, turns: Sequence[int]) -> list[int]:
        """The sets with a problem that this step has not had, if it gets those of `turns` too."""
        return [
            i for i, problem_set in enumerate(self._sets) if len(problem_set) > len(self._in_step[i]) + turns.count(i)
        ]

    def _farthest_behind(self, sets: Sequence[int], counts: Sequence[int]) -> int:
        """The set among these that is farthest behind its share of all sets' `counts`."""
        total = sum(counts) + 1
        return max(sets, key=lambda i: (self._shares[i] * total - counts[i], -i))

    def _take(self, turns: Sequence[int]) -> list[Problem]:
        """The next problems of these sets, in this order."""
        taken = [iter(problem_set.take(turns.count(i), self._in_step[i])) for i, problem_set in enumerate(self._sets)]
        taken_problems = [(i, next(taken[i])) for i in turns]
        for i, index in taken_problems:
            self._in_step[i].add(index)
        return [self._sets[i].problems[index] for i, index in taken_problems]

    def problem(self, id: str) -> Problem:
        return self._by_id[id]

    @property
    def first(self) -> Problem:
        """The first problem of the current epoch."""
        return self._sets[0].problems[self._sets[0].order[0]]

    def state(self) -> dict[str, Any]:
        """The stream's position as JSON values, for `restore`."""
        states = [problem_set.state() for problem_set in self._sets]
        return self._identity() | (states[0] if len(states) == 1 else {"sets": states, "drawn": self._drawn})

    def restore(self, state: dict[str, Any]) -> None:
        """Continue after the batch at which `state` was taken. Raises InputError for a state of another stream."""
        for name, value in self._identity().items():
            if state.get(name) != value:
                setting = name.replace("batch_size", "problems_per_step")
                raise InputError(
                    f"the checkpoint's data cursor has {setting} {state.get(name)}, this run has {value}; "
                    "resume with the problems, problems_per_step and seed that the run started with"
                )
        for problem_set, of_set in zip(self._sets, state.get("sets", [state]), strict=True):
            problem_set.restore(of_set)
        self._drawn = list(state.get("drawn", [0]))

    def _identity(self) -> dict[str, Any]:
        digest = sha256("\n".join(self._names).encode()).hexdigest()
        return {"problems": digest, "batch_size": self._batch_size, "seed": self._seed}


class _Epochs:
    """The epochs of one set. `order` holds the indices of the problems of the current one."""

    def __init__(
        self, problems: Sequence[Problem], batch_size: int, seed: int, name: str, curriculum: CurriculumConfig | None
    ):
        self.problems = list(problems)
        self._batch_size, self._curriculum = batch_size, curriculum
        self._seed = f"{seed}/{name}" if name else f"{seed}"
        self._start()

    def __len__(self) -> int:
        return len(self.problems)

    def _start(self) -> None:
        self.epoch = self._position = 0
        self._rates = {problem.id: problem.pass_rate for problem in self.problems if problem.pass_rate is not None}
        self._rests_until: dict[str, int] = {}
        self.order = self._ordered()

    def take(self, count: int, used: set[int]) -> list[int]:
        """The next `count` indices that are not `used`; fewer if there are no more."""
        taken = self._next(count, used)
        if len(taken) < count:
            self.epoch += 1
            self.order, self._position = self._ordered(used | set(taken)), 0
            taken = taken + self._next(count - len(taken), used | set(taken))
        return taken

    def _next(self, count: int, used: set[int]) -> list[int]:
        """Indices of this epoch. Problems that this step has used already stay for later."""
        left = self.order[self._position :]
        taken = [index for index in left if index not in used][:count]
        chosen = set(taken)
        self.order[self._position :] = taken + [index for index in left if index not in chosen]
        self._position += len(taken)
        return taken

    def _ordered(self, used: set[int] | None = None) -> list[int]:
        """An epoch's order. Problems that rest come only where a batch could not be filled without them."""
        order = list(range(len(self.problems)))
        # `random` hashes a text seed, so the orders of neighbouring seeds and epochs are unrelated.
        Random(f"{self._seed}/{self.epoch}").shuffle(order)
        if self._curriculum is None:
            return order
        if self._curriculum.order == "easy_first":  # a problem that was never measured counts as half solved
            order.sort(key=lambda index: -self._rates.get(self.problems[index].id, 0.5))
        awake = [index for index in order if self._rests_until.get(self.problems[index].id, 0) <= self.epoch]
        return awake if len(awake) >= self._batch_size + len(used or ()) else order

    def tell(self, rates: Mapping[str, float], taught: Mapping[str, bool]) -> None:
        if self._curriculum is None:
            return
        ids = {problem.id for problem in self.problems}
        self._rates |= {name: rate for name, rate in rates.items() if name in ids}
        for name in ids & taught.keys():
            self._rests_until.pop(name, None)
            if not taught[name] and self._curriculum.rest:
                self._rests_until[name] = self.epoch + 1 + self._curriculum.rest

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"epoch": self.epoch, "position": self._position}
        if self.epoch or self._curriculum is not None:  # else the seed gives the order
            state["order"] = " ".join(map(str, self.order))
        if self._curriculum is not None:
            state |= {"rates": self._rates, "rests_until": self._rests_until}
        return state

    def restore(self, state: dict[str, Any]) -> None:
        self._start()
        if "order" in state:
            self.order = [int(index) for index in state["order"].split()]
        self.epoch, self._position = state["epoch"], state["position"]
        if self._curriculum is not None:
            self._rates |= state.get("rates", {})
            self._rests_until = dict(state.get("rests_until", {}))
