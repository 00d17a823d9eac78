"""Sums over the groups of completions of a run, as arrays: a row for each group of each step."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from cooper_audit.run.change_points import FEWEST_PROBLEMS, Series, Spans, estimated_change, t_quantile
from cooper_audit.statistics import Estimate

COLUMNS = (
    *("rows", "reward", "judged", "accepted", "unparsed", "lenient", "literal", "accepted_reward", "rejected_reward"),
    *("pairs", "concordant", "paid_accepted", "paid_rejected", "unpaid_accepted", "unpaid_rejected"),
    *("positive", "positive_rejected", "silent", "characters"),
)
"""Sums over the rows of a group. `lenient` counts what is accepted or ends in the words or the value of the reference,
`literal` what is accepted and ends in its words.
`pairs` are those of an accepted and a rejected row, `concordant` those in which the accepted one is paid more.
`positive` sums the positive advantages, `silent` counts the rows on which the rule is silent, and `characters` those of
the question."""
GARBLED = "garbled"
"""The column of the table that counts what is accepted and ends in a word that ends no other completion of the run. A
unit, a name or a phrase recurs, in whatever language; nonsense does not."""
REPEATED = 3
"""If problems come so often on average, a step is compared with what its problems are like in other steps."""
SHARED = 30
"""So many problems in both windows show that the problems did not become harder; also half of one window's."""


@dataclass
class Groups:
    """A row for each group of each step."""

    steps: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    sums: list[Sequence[float]] = field(default_factory=list)
    words: list[Sequence[str]] = field(default_factory=list)
    """Last words of accepted rows that neither the reference nor the question explains."""
    scored: list[tuple[float, bool]] = field(default_factory=list)
    """Reward of every judged row, and whether it is accepted."""

    def add(
        self,
        step: int,
        groups: Sequence[tuple[str, Sequence[float], Sequence[str]]],
        scored: Sequence[Sequence[float]],
    ) -> None:
        for problem, sums, words in groups:
            self.steps.append(step)
            self.problems.append(problem)
            self.sums.append(sums)
            self.words.append(words)
        self.scored += [(float(reward), bool(accepted)) for reward, accepted in scored]

    def table(self) -> "Table":
        _, problems = np.unique(np.array(self.problems, dtype=object), return_inverse=True)
        values = np.array(self.sums, dtype=float).reshape(len(self.steps), len(COLUMNS))
        times = Counter(word for words in self.words for word in words)
        once = [float(sum(times[word] == 1 for word in words)) for words in self.words]
        columns = dict(zip(COLUMNS, values.T, strict=True)) | {GARBLED: np.array(once)}
        return Table(np.array(self.steps, dtype=int), problems, columns)


@dataclass(frozen=True)
class Table:
    """The sums of every group as arrays."""

    steps: ndarray
    problem_of: ndarray
    """The number of each group's problem."""
    columns: Mapping[str, Float[ndarray, " G"]]

    def __getitem__(self, name: str) -> Float[ndarray, " G"]:
        if name == "rejected":
            return self.columns["judged"] - self.columns["accepted"]
        return self.columns[name]

    def where(self, rows: Bool[ndarray, " G"]) -> "Table":
        columns = {name: values[rows] for name, values in self.columns.items()}
        return Table(self.steps[rows], self.problem_of[rows], columns)

    def share(self, over: str, under: str, rows: Bool[ndarray, " G"]) -> float:
        """The quotient of two columns' sums over some rows; NaN if the second is 0."""
        below = float(self[under][rows].sum())
        return float(self[over][rows].sum()) / below if below else math.nan

    def problems(self, rows: Bool[ndarray, " G"]) -> int:
        return len(np.unique(self.problem_of[rows]))

    def shared(self, before: Bool[ndarray, " G"], after: Bool[ndarray, " G"]) -> bool:
        """Whether both windows have enough problems in common to say that these did not become harder."""
        common = np.intersect1d(self.problem_of[before], self.problem_of[after])
        return len(common) >= max(
            min(SHARED, self.problems(after)), min(self.problems(before), self.problems(after)) / 2
        )

    def window(self, first: int, last: int) -> "Window":
        return Window(first, last, (self.steps >= first) & (self.steps <= last))

    def series(self, over: str, under: str) -> Series:
        """The quotient of two columns by step, over the steps in which the second is not 0.

        Where problems come again, a step's value is corrected for how its problems fare in other steps.
        """
        rows = self[under] > 0
        steps, step_of = np.unique(self.steps[rows], return_inverse=True)
        above, below = self[over][rows], self[under][rows]
        weights = np.bincount(step_of, below)
        values = np.bincount(step_of, above) / weights
        problems = np.unique(self.problem_of[rows], return_inverse=True)[1]
        if len(problems) and len(problems) >= REPEATED * (problems.max() + 1):
            values = _without_problems(above, below, step_of, problems)
        return Series(steps, values, weights, steps)

    def judged_series(self, over: str, shortest: int | None) -> Series:
        """The share of the judged rows by step. Where two halves are compared and a step has few judged rows, such as
        those with labels, by group: such steps would say little of the noise.
        """
        rows = self["judged"] > 0
        steps, judged = self.steps[rows], self["judged"][rows]
        if shortest is not None or judged.sum() >= FEWEST_PROBLEMS * len(np.unique(steps)):
            return self.series(over, "judged")
        order = np.argsort(steps, kind="stable")
        return Series(steps[order], (self[over][rows] / judged)[order], judged[order], steps[order])

    def change(self, over: str, under: str, before: "Window", after: "Window", error: float = 0.05) -> Estimate:
        """How much the quotient of two columns rose between two windows, with its interval. The unit is the problem or
        the step, whichever gives the wider interval.
        """
        series = self.series(over, under)
        spans = Spans((before.first, before.last), (after.first, after.last))
        change = estimated_change(series, spans, error)
        by_problem = self.half_width(over, under, before.rows, after.rows, error)
        half = max(change.high - change.mean, by_problem)
        return Estimate(change.mean, change.mean - half, change.mean + half)

    def half_width(
        self, over: str, under: str, before: Bool[ndarray, " G"], after: Bool[ndarray, " G"], error: float
    ) -> float:
        """Half the width of the interval of a change with the problem as the unit, by linearisation (Kish 1965)."""
        size = int(self.problem_of.max()) + 1
        pulls, fewest = np.zeros(size), math.inf
        for rows, sign in ((before, -1.0), (after, 1.0)):
            total = float(self[under][rows].sum())
            if not total:
                return math.nan
            off = self[over][rows] - self.share(over, under, rows) * self[under][rows]
            pulls += sign * np.bincount(self.problem_of[rows], off, size) / total
            fewest = min(fewest, self.problems(rows))
        if fewest < 2:
            return math.inf
        return t_quantile(1 - error / 2, fewest - 1) * math.sqrt(float(pulls @ pulls) * fewest / (fewest - 1))


def _without_problems(
    above: Float[ndarray, " G"], below: Float[ndarray, " G"], step_of: ndarray, problem_of: ndarray
) -> Float[ndarray, " N"]:
    """What each step adds to its problems' own level, plus the mean: least squares of two effects, by turns."""
    values = above / below
    of_problem = np.zeros(int(problem_of.max()) + 1)
    of_step = np.zeros(int(step_of.max()) + 1)
    for _ in range(50):
        of_problem = np.bincount(problem_of, below * (values - of_step[step_of])) / np.bincount(problem_of, below)
        of_step = np.bincount(step_of, below * (values - of_problem[problem_of])) / np.bincount(step_of, below)
    mean = float(above.sum() / below.sum())
    return of_step - float(np.bincount(step_of, below) @ of_step / below.sum()) + mean


@dataclass(frozen=True)
class Window:
    first: int
    last: int
    rows: Bool[ndarray, " G"]
    """Its groups."""

    def __str__(self) -> str:
        return f"steps {self.first} to {self.last}" if self.first < self.last else f"step {self.first}"
