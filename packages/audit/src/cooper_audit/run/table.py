"""Sums over the groups of completions of a run, as arrays: a row for each group of each step."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from cooper_audit.run.change_points import FEWEST_PROBLEMS, Series, Spans, estimated_change, t_quantile
from cooper_audit.run.kinds import MOST_VALUES, form_of
from cooper_audit.run.lenient import is_estimate, otherwise
from cooper_audit.run.paid_rows import PAYMENTS, by_group, compared_with, payments_of
from cooper_audit.run.pay_tracks import BESIDE, LEVEL, PAY
from cooper_audit.run.run_record import RunRecord, RunRow, read_rollouts
from cooper_audit.statistics import Estimate

COLUMNS = (
    *("rows", "reward", "judged", "accepted", "unread", "lenient", "literal"),
    *("accepted_reward", "rejected_reward"),
    *("pairs", "concordant", "paid_accepted", "paid_rejected"),
    *("positive", "positive_rejected", "silent", "characters"),
)
"""Sums over the rows of a group. `unread` counts rows in which the check finds no answer and that state none in another
form either, `lenient` what is right in any form, `literal` what is accepted and ends in the reference's words. `pairs`
are those of a right and a wrong row in which an answer is read, `concordant` those in which the accepted one is paid
more. `positive` sums the positive advantages, `silent` counts the rows on which the rule is silent, and `characters`
those of the question."""
FEWEST_OF_KIND = 4
"""Wrong rows of a kind in a step that count by themselves."""
KIND = "kind"
"""The column with the number of the kind of each group's problem."""
SET = "set"
"""The column with the number of the data set of each group's problem; of more than `MOST_VALUES` none is told apart."""
GARBLED = "garbled"
"""The column of the table that counts what is accepted and ends in a word that ends no other completion of the run. A
unit, a name or a phrase recurs, in whatever language; nonsense does not."""
ALL_COLUMNS = (*COLUMNS, *PAYMENTS, KIND, SET, GARBLED)
REPEATED = 3
"""If problems come so often on average, a step is compared with what its problems are like in other steps."""
SHARED = 30
"""So many problems in both windows show that the problems did not become harder; also half of one window's."""


class JudgedRow(NamedTuple):
    """A completion that the check judges, and what it was paid."""

    reward: float
    advantage: float
    is_right: bool
    is_read: bool = True
    """Whether the check finds an answer."""
    as_read_otherwise: bool | None = None
    """Where it does not: whether the answer is right that the completion states in another form; None if it states
    none, or if nobody knows."""
    ends: bool = True
    """Whether the text ends in the words of a reference."""

    @property
    def said(self) -> bool | None:
        """Whether it is right, in whatever form; None where that is unknown."""
        return self.is_right if self.is_read else self.as_read_otherwise


class GroupSums(NamedTuple):
    """What is kept of a group, as JSON values."""

    problem: str
    kind: str
    """What the answers of its problem look like. A reward and a check may differ about one kind more than elsewhere."""
    sums: Sequence[float]
    """Its `COLUMNS`."""
    right: Sequence[float]
    wrong: Sequence[float]
    """The rewards of rows that the check accepts and of those that are wrong."""
    otherwise: Sequence[float]
    """Those of rows that are right in another form, which the reward may pay or not."""
    words: Sequence[str]
    """Last words of accepted rows that neither the reference nor the question explains."""
    data_set: str = ""
    """That of its problem, where the rows name one. A judge may err more often about one than about others."""


def sums_of(
    problem: str,
    reference: str,
    rows: Sequence[JudgedRow],
    given: Mapping[str, float],
    words: Sequence[str] = (),
    data_set: str = "",
) -> GroupSums:
    """The sums of a group over the rows that the check judges, and the `given` ones over all its rows."""
    counts: Counter[str] = Counter()
    sums: dict[str, float] = defaultdict(float)
    for row in rows:
        lenient = row.is_right or row.said is True
        counts.update({"judged": 1, "accepted": row.is_right, "literal": row.is_right and row.ends, "lenient": lenient})
        counts["unread"] += row.said is None
        name = "accepted" if row.is_right else "rejected"
        counts[f"paid_{name}"] += row.advantage > 0
        positive = max(row.advantage, 0.0)
        sums[f"{name}_reward"] += row.reward
        sums["positive"] += positive
        sums["positive_rejected"] += 0.0 if row.is_right else positive
    right, wrong = [row.reward for row in rows if row.is_right], [row.reward for row in rows if row.said is False]
    in_another_form = [row.reward for row in rows if not row.is_right and row.said]
    pairs = [(a, b) for a in (*right, *in_another_form) for b in wrong]
    values = {**counts, **sums, "pairs": len(pairs), "concordant": sum((a > b) + 0.5 * (a == b) for a, b in pairs)}
    columns = [float({**values, **given}.get(name, 0)) for name in COLUMNS]
    return GroupSums(problem, form_of(reference), columns, right, wrong, in_another_form, words, data_set)


def judged(
    verdict: str,
    reward: float,
    advantage: float,
    text: str,
    references: Sequence[str],
    question: str,
    is_cut: bool = False,
) -> JudgedRow | None:
    """A row by a rule's verdict; None where it judges nothing, or where nothing was paid because the grading failed."""
    if verdict in ("silent", "timeout") or not math.isfinite(reward):
        return None
    is_read = verdict != "unparsed" and not (verdict == "wrong" and is_estimate(text, references))
    in_another_form = None if is_read else otherwise(text, references, question, is_cut)
    return JudgedRow(reward, advantage, verdict == "correct", is_read, in_another_form)


Rewards = tuple[str, Sequence[float], Sequence[float]]
"""Of a group the kind of its problem, and the rewards of its right and of its wrong rows."""


def payment_shares(groups: Sequence[Rewards]) -> dict[str, float]:
    """`PAY` of a step: `reward/wrong_paid`, the share of the wrong rows that are paid like right ones;
    `reward/paid_wrong`, the wrong share of what is paid like right rows; and `reward/wrong_paid_less`, by how much less
    wrong rows are paid. Nothing where there is nothing to compare.

    Each is given for every kind of problem with `FEWEST_OF_KIND` wrong rows (`reward/wrong_paid/text`), and as the mean
    over these: a reward and a check may differ about one kind more than about others, and a mix of kinds that changes
    is no change of either. Beside them is `LEVEL`, because a judge may err more often about problems that are hard.
    """
    is_normalised = by_group([rewards for _, *rewards in groups])
    everywhere = [] if is_normalised else [reward for _, right, _ in groups for reward in right]
    sums: dict[str, ndarray] = {}
    counts: list[tuple[float, ...]] = []
    for kind, right, wrong in groups:
        compared, like, less, _ = compared_with(right or everywhere, wrong)
        sums[kind] = sums.get(kind, 0) + np.array([compared, like, less, len(right)])
        counts.append((compared, like, len(right), len(right) + len(wrong)))
    large = {kind: of_kind for kind, of_kind in sums.items() if of_kind[0] >= FEWEST_OF_KIND}
    shares = {
        kind: (like / n, like / (like + right), less / n)
        for kind, (n, like, less, right) in (large or {"": sum(sums.values(), np.zeros(4))}).items()
        if n and like + right
    }
    if not shares:
        return {}
    metrics: dict[str, float] = dict(zip(PAY, map(float, np.mean([*shares.values()], axis=0)), strict=True))
    for kind, of_kind in shares.items():
        if kind:
            named = kind.removeprefix("a ").removeprefix("an ").replace(" ", "-")
            metrics |= {f"{name}/{named}": float(value) for name, value in zip(PAY, of_kind, strict=True)}
    wrong, like, right, read = np.array(counts, dtype=float).T
    has_right = right > 0
    if wrong[has_right].any():  # of groups of one nothing is known
        usual = usual_pay(right[has_right].sum() / read[has_right].sum(), wrong[has_right].sum(), like[has_right].sum())
        parts = np.stack([wrong, like * has_right, (like - usual * wrong) * ~has_right])
        kinds = np.array([kind for kind, _, _ in groups])
        sums_of_kinds = [parts[:, kinds == kind].sum(axis=1) for kind in large] or [parts.sum(axis=1)]
        metrics |= zip(BESIDE, np.mean([part[1:] / part[0] for part in sums_of_kinds], axis=0).tolist(), strict=True)
    levels = _levels(wrong, like, right, read, np.zeros(len(groups), dtype=int))
    metrics.update(() if math.isnan(levels.mean) else zip(LEVEL, levels[:-1], strict=True))
    return metrics


def usual_pay(right: float, wrong: float, like: float) -> float:
    """How often a row is paid like a right one, if a share of them is right, and of `wrong` ones `like` are so paid: of
    two right rows one is paid less.
    """
    return right / 2 + (1 - right) * (like / wrong if wrong else 0.0)


@dataclass
class Groups:
    """A row for each group of each step."""

    steps: list[int] = field(default_factory=list)
    groups: list[GroupSums] = field(default_factory=list)
    scored: list[tuple[float, bool]] = field(default_factory=list)
    """Reward of every judged row, and whether it is accepted."""

    def add(self, step: int, groups: Sequence[GroupSums], scored: Sequence[Sequence[float]] = ()) -> None:
        """The groups of a step, later than those before."""
        self.steps += [step] * len(groups)
        self.groups += groups
        self.scored += [(float(reward), bool(accepted)) for reward, accepted in scored]

    def table(self) -> "Table":
        names = ([getattr(group, name) for group in self.groups] for name in ("problem", "kind", "data_set"))
        problems, kinds, sets = (np.unique(np.array(part, dtype=object), return_inverse=True)[1] for part in names)
        sets = sets * (sets.max(initial=0) < MOST_VALUES)
        values = np.array([group.sums for group in self.groups], dtype=float).reshape(len(self.steps), len(COLUMNS))
        by_step = [
            [(group.right, group.wrong, group.otherwise) for _, group in of_step]
            for _, of_step in groupby(zip(self.steps, self.groups, strict=True), key=itemgetter(0))
        ]
        of_groups = [payment for of_step in payments_of(by_step) for payment in of_step]
        payments = np.array(of_groups, dtype=float).reshape(len(self.steps), len(PAYMENTS))
        times = Counter(word for group in self.groups for word in group.words)
        once = [float(sum(times[word] == 1 for word in group.words)) for group in self.groups]
        columns = dict(zip((*COLUMNS, *PAYMENTS), (*values.T, *payments.T), strict=True))
        return Table(
            np.array(self.steps, dtype=int), problems, columns | {GARBLED: np.array(once), KIND: kinds, SET: sets}
        )


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
        if name == "rated":
            return self.columns["lenient"] + self.columns["paid_like_right"]
        if name == "surely_wrong":  # even if all is right that nobody reads
            return self.columns["judged"] - self.columns["lenient"] - self.columns["unread"]
        if name == "possibly_rated":
            return self["rated"] + self.columns["unread"]
        if name == "not_paid_less":
            return -self.columns["paid_less"]
        return self.columns[name]

    @property
    def says_something(self) -> bool:
        """Whether the check reads an answer in any completion."""
        return bool(self["judged"].sum() > self["unread"].sum())

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

    def paired(self, last: "Window", until: int) -> Estimate:
        """How much more of a problem's rows the check accepts in the last window than when the problem came before, up
        to a step, over the problems that did; NaN where fewer than half did, or fewer than `FEWEST_PROBLEMS`.
        """
        size, judged = int(self.problem_of.max()) + 1, self["judged"] > 0
        rates, rows = [], (judged & (self.steps <= min(until, last.first - 1)), judged & last.rows)
        for chosen in rows:
            over, under = (np.bincount(self.problem_of[chosen], self[n][chosen], size) for n in ("accepted", "judged"))
            rates.append(np.divide(over, under, out=np.full(size, math.nan), where=under > 0))
        changes = (rates[1] - rates[0])[np.isfinite(rates[0] + rates[1])]
        if len(changes) < max(FEWEST_PROBLEMS, np.isfinite(rates[1]).sum() / 2):
            return Estimate(math.nan, math.nan, math.nan)
        half = t_quantile(0.975, len(changes) - 1) * float(changes.std(ddof=1)) / math.sqrt(len(changes))
        return Estimate(float(changes.mean()), float(changes.mean()) - half, float(changes.mean()) + half)

    def window(self, first: int, last: int) -> "Window":
        return Window(first, last, (self.steps >= first) & (self.steps <= last))

    def series(self, over: str, under: str) -> Series:
        """The quotient of two columns by step, over the steps in which the second is not 0.

        Where problems come again, a step's value is corrected for how its problems fare in other steps.
        """
        if (over, under) not in self._series:
            self._series[over, under] = self._series_of(over, under)
        return self._series[over, under]

    @cached_property
    def _series(self) -> dict[tuple[str, str], Series]:
        return {}

    def _series_of(self, over: str, under: str) -> Series:
        rows = self[under] > 0
        steps, step_of = np.unique(self.steps[rows], return_inverse=True)
        above, below = self[over][rows], self[under][rows]
        weights = np.bincount(step_of, below)
        values = np.bincount(step_of, above) / weights
        problems = np.unique(self.problem_of[rows], return_inverse=True)[1]
        if len(problems) and len(problems) >= REPEATED * (problems.max() + 1):
            of_step = two_effects(above, below, problems, step_of)[1]
            values = of_step + (above.sum() - weights @ of_step) / weights.sum()
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

    def change_by_problem(self, over: str, under: str, before: "Window", after: "Window", error: float) -> Estimate:
        """The same with the problem as the unit."""
        change = self.share(over, under, after.rows) - self.share(over, under, before.rows)
        half = self.half_width(over, under, before.rows, after.rows, error)
        return Estimate(change, change - half, change + half)

    def half_width(
        self, over: str, under: str, before: Bool[ndarray, " G"] | None, after: Bool[ndarray, " G"], error: float
    ) -> float:
        """Half the width of the interval of a change with the problem as the unit, by linearisation (Kish 1965); or of
        the quotient over some rows, if there are none before. A problem whose right rows are those beside which others'
        wrong rows are seen pulls these too.
        """
        windows = ((after, 1.0),) if before is None else ((before, -1.0), (after, 1.0))
        size = int(self.problem_of.max()) + 1
        pulls, fewest = np.zeros(size), math.inf
        for rows, sign in windows:
            total = float(self[under][rows].sum())
            if not total:
                return math.nan
            share = self.share(over, under, rows)
            off = (self[over] + self._as_right(over) - share * (self[under] + self._as_right(under)))[rows]
            pulls += sign * np.bincount(self.problem_of[rows], off, size) / total
            fewest = min(fewest, self.problems(rows))
        if fewest < 2:
            return math.inf
        return t_quantile(1 - error / 2, fewest - 1) * math.sqrt(float(pulls @ pulls) * fewest / (fewest - 1))

    def _as_right(self, name: str) -> Float[ndarray, " G"] | float:
        """What the right rows of each group add to a column of other groups (`PAYMENTS`)."""
        if name in ("paid_like_right", "rated", "possibly_rated"):
            return self.columns["like_as_right"]
        if name in ("paid_less", "not_paid_less"):
            return self.columns["less_as_right"] * (1 if name == "paid_less" else -1)
        return 0.0


class Levels(NamedTuple):
    """How many of a wrong row's group are right, over some wrong rows."""

    mean: float
    variance: float
    """Inside a step, less that by which so few completions differ by chance."""
    covariance: float
    """Of the level with being paid like right rows, inside a step."""
    error: float
    """The standard error of the covariance."""


def levels_of(table: Table, rows: Bool[ndarray, " G"]) -> Levels:
    """Of some groups; NaN where none has three rows that are read, one of them wrong."""
    read = table["judged"] - table["unread"]
    step_of = np.unique(table.steps[rows], return_inverse=True)[1]
    wrong, like, right = (table[name][rows] for name in ("compared", "paid_like_right", "lenient"))
    return _levels(wrong, like, right, read[rows], step_of)


def _levels(
    wrong: Float[ndarray, " G"],
    like: Float[ndarray, " G"],
    right: Float[ndarray, " G"],
    read: Float[ndarray, " G"],
    step_of: Int[ndarray, " G"],
) -> Levels:
    """The level of a wrong row is the right share of the others of its group, so that the row has no part in it."""
    kept = (wrong > 0) & (read > 2)
    if not kept.any():
        return Levels(math.nan, math.nan, math.nan, math.nan)
    wrong, like, others, step_of = wrong[kept], like[kept] / wrong[kept], read[kept] - 1, step_of[kept]
    level, weights = right[kept] / others, wrong / wrong.sum()
    by_step = np.bincount(step_of, wrong)

    def inside_steps(values: Float[ndarray, " G"]) -> Float[ndarray, " G"]:
        return values - (np.bincount(step_of, wrong * values) / np.maximum(by_step, 1.0))[step_of]

    off, together = inside_steps(level), weights * inside_steps(level) * inside_steps(like)
    by_chance = level * (1 - level) / (others - 1) * (1 - wrong / by_step[step_of])
    variance, error = weights @ (off**2 - by_chance), math.sqrt(float(together @ together))
    return Levels(float(weights @ level), float(variance), float(together.sum()), error)


def two_effects(
    over: Float[ndarray, " G"], under: Float[ndarray, " G"], first: Int[ndarray, " G"], second: Int[ndarray, " G"]
) -> tuple[Float[ndarray, " K"], Float[ndarray, " N"]]:
    """What each value of the `first` and of the `second` attribute adds to a share, by least squares, by turns. What
    comes with a value of both alone counts as the first one's.
    """
    by_first, by_second = np.bincount(first, under), np.bincount(second, under)
    of_first, of_second = np.zeros(len(by_first)), np.zeros(len(by_second))
    for _ in range(50):
        left = np.bincount(first, over - of_second[second] * under)
        of_first = np.divide(left, by_first, out=np.zeros_like(left), where=by_first > 0)
        left = np.bincount(second, over - of_first[first] * under)
        of_second = np.divide(left, by_second, out=np.zeros_like(left), where=by_second > 0)
    return of_first, of_second


@dataclass(frozen=True)
class Window:
    first: int
    last: int
    rows: Bool[ndarray, " G"]
    """Its groups."""

    def __str__(self) -> str:
        return f"steps {self.first} to {self.last}" if self.first < self.last else f"step {self.first}"


def table_of(run: RunRecord, by_gold: bool) -> Table:
    """The recorded completions of a run of Cooper's, judged by gold or else by the rule."""
    groups = Groups()
    for step, recorded in read_rollouts(run.directory):
        groups.add(step, [sums_of_recorded(group, by_gold) for group in recorded])
    return groups.table()


def sums_of_recorded(group: RunRow, by_gold: bool) -> GroupSums:
    """The sums of a recorded group."""
    reference, question = str(group.get("answer", "")), group["question"]
    rows, completions = [], group["completions"]
    for one in completions:
        gold = one.get("gold")
        verdict = one["verdict"] if not by_gold else "silent" if gold is None else "correct" if gold else "wrong"
        advantage = one.get("advantage", 0.0)
        is_cut = one.get("stop_reason") == "length"
        rows.append(judged(verdict, one["reward"], advantage, one["text"], [reference], question, is_cut))
    paid = [one["reward"] for one in completions if math.isfinite(one["reward"])]
    given = {"rows": len(paid), "reward": math.fsum(paid), "characters": len(question) * len(completions)}
    given["silent"] = sum(one["verdict"] == "silent" for one in completions)
    judged_rows, data_set = [row for row in rows if row is not None], str(group.get("set") or "")
    return sums_of(group["problem"], reference, judged_rows, given, data_set=data_set)
