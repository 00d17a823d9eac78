"""Which parts of a run are lost, with the error divided among all of them.

A part is lost if a measure of it fell and is still down at the end: gold, or else the rule, for the verdict; for the
alarm, which needs neither, a sign that answers fit their reference less. The statistic of a test is that of every
verdict on a run, the largest standardised fall between two windows of steps. It is compared with the largest of all
tests after their steps are put in random orders, each in units of its own spread over these orders (the single-step
maxT of Westfall and Young 1993, chapter 2). So the search over parts is inside the test.

Further conditions keep a policy that wanders and problems that become harder from being accused: the fall is at least
`LOST`, measured on steps that did not choose its windows; it is at least twice the fall of the run's other problems;
and the reward of the part did not fall with it, or it is `LOST_ANYHOW`.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from cooper_audit.run.change_points import (
    ERROR,
    FEWEST_STEPS,
    ORDERS,
    SHOWN,
    Series,
    Spans,
    change_between,
    estimated_change,
    largest_fall,
    measured,
    shortest_of,
    widest_fall,
)
from cooper_audit.run.parts import Part, PartsRecord, PartsTable
from cooper_audit.run.windows import largest_split

FIRST_ORDERS = 200
"""Random orders of the steps of all parts, after which candidates that these show to be common are left out."""
LOST = 0.25
"""The smallest fall of a share of a part's completions that counts as its loss."""
SHARED = 0.5
"""A fall of which the run's other problems share so much is the run's, and not the part's alone."""
LOST_ANYHOW = 0.6
"""A fall of gold or the rule that counts whatever the reward does. A smaller one counts where the reward did not fall
with it, because problems that become harder lower both."""
TRUTHS = ("gold", "rule")
"""The measures that a verdict trusts; of a run that has the first, the second is not asked."""
SIGNS = ("magnitude", "near", "agreement")
"""What needs no verdict."""
SAID = {
    "gold": "gold accuracy fell from {before} to {after}",
    "rule": "rule accuracy fell from {before} to {after}",
    "magnitude": "answers whose number has the reference's magnitude fell from {before} to {after}",
    "near": "accepted answers that a near reference rejects fell from {before} to {after}",
    "agreement": "agreement within groups fell from {before} to {after}",
}
GROWTH, MOST_LOOKS = 1.2, 40
LOOKS = [math.ceil(FEWEST_STEPS * GROWTH**look) for look in range(MOST_LOOKS)]
"""The numbers of steps after which the alarm looks, up to 14,700. Its error is divided among the looks."""


@dataclass(frozen=True)
class LostPart:
    part: Part
    measure: str
    since: int
    """The step from which on the measure is most below what it was before, since it was best."""
    before: float
    after: float
    paid_before: float
    paid_after: float
    """The mean reward in the same windows; NaN where nothing was paid."""
    probability: float
    """How probable a fall as large is in any part if nothing changed."""

    @property
    def sentence(self) -> str:
        return f"{self.part.full_name}, {100 * self.part.share:.0f} % of the completions: {self.course}"

    @property
    def course(self) -> str:
        """What happened, and since when."""
        said = SAID[self.measure].format(before=f"{self.before:.2f}", after=f"{self.after:.2f}")
        paid = "nothing was paid there"
        if np.isfinite(self.paid_before) and np.isfinite(self.paid_after):
            paid = f"the reward there went from {self.paid_before:.2f} to {self.paid_after:.2f}"
        return f"since step {self.since} {said}, and {paid}"


def lost_parts(
    table: PartsTable,
    measures: Sequence[str] = TRUTHS,
    error: float = ERROR,
    known: Collection[tuple[str, str]] = (),
) -> list[LostPart]:
    """The parts that are lost by these measures, the clearest first. An honest run has one with the probability
    `error`. Those `known` by name and measure are not tested again.
    """
    everything = np.ones(len(table.steps), dtype=bool)
    if set(measures) == set(TRUTHS) and len(table.series(everything, "gold")) >= FEWEST_STEPS:
        measures = ["gold"]
    tests = [
        (part, measure, series)
        for part in table.parts
        for measure in measures
        if len(series := table.series(part.rows, measure)) >= FEWEST_STEPS
    ]
    found = [None if (test[0].name, test[1]) in known else _fall_of(table, *test) for test in tests]
    candidates = [place for place, fall in enumerate(found) if fall is not None]
    probabilities = fall_probabilities([series for *_, series in tests], candidates, error)
    lost = [
        _lost(table, tests[place], spans, probability)
        for place, probability in probabilities.items()
        if probability <= error and (spans := found[place]) is not None
    ]
    told = np.zeros(len(table.steps), dtype=bool)
    for part in table.parts:
        if part.name in {name for name, _ in known}:
            told |= part.rows
    return _without_echoes(table, sorted(lost, key=lambda one: one.probability), told)


def fall_probabilities(tests: Sequence[Series], candidates: Sequence[int], error: float) -> dict[int, float]:
    """For each candidate among the tests, how probable it is that any of the tests shows a fall as large by chance.

    The orders of the steps are drawn for each test by itself, which is cautious where parts overlap and so fall
    together (Šidák 1967). Candidates that cannot have a probability of `error` or less are left out: those that are
    common among the orders of their own test, and then those that are among the first orders of all tests.
    """
    seen = np.array([_statistic(series)[0] for series in tests]) if candidates else np.zeros(0)
    generators = [np.random.default_rng(place) for place in range(len(tests))]
    left = [place for place in candidates if _is_rare(tests[place], seen[place], error)]
    drawn, probabilities = np.zeros((len(tests), 0)), dict[int, float]()
    for count in (FIRST_ORDERS, ORDERS - FIRST_ORDERS):
        if not left:
            return {}
        more = [_statistic(*test, count) for test in zip(tests, generators, strict=True)]
        drawn = np.concatenate([drawn, np.array(more)], axis=1)
        every = np.concatenate([drawn, seen[:, None]], axis=1)
        spread = every.std(axis=1, keepdims=True)
        scaled = (every - every.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, np.inf)
        largest = scaled[:, :-1].max(axis=0)
        probabilities = {place: _probability(scaled[place, -1], largest) for place in left}
        left = [place for place in left if probabilities[place] <= max(error, 2 / count)]
    return probabilities


def _probability(seen: float, drawn: Float[ndarray, " R"]) -> float:
    """How probable a value as large is: the share of drawn ones, and where none is as large, by the Gumbel distribution
    with their mean and spread, which maxima have (Winkler et al. 2016, NeuroImage 141:502), and at most that share.
    """
    share = (1 + int((drawn >= seen - 1e-9).sum())) / (1 + len(drawn))
    if share > 1 / (1 + len(drawn)):
        return share
    scale = math.sqrt(6) / math.pi * float(drawn.std())
    beyond = (seen - float(drawn.mean())) / scale + np.euler_gamma if scale > 0 else math.inf
    return min(share, -math.expm1(-math.exp(-beyond)))


def _is_rare(series: Series, seen: float, error: float) -> bool:
    drawn = _statistic(series, np.random.default_rng(0), FIRST_ORDERS)
    return int((drawn >= seen - 1e-9).sum()) <= error * FIRST_ORDERS


def _statistic(series: Series, generator: np.random.Generator | None = None, orders: int = 1) -> Float[ndarray, " R"]:
    """The largest fall in its standard errors: of the series, or of so many random orders of its steps."""
    blocks, shortest = series.in_blocks(shortest_of(len(series)))
    values, weights = blocks.values[None], blocks.weights[None]
    if generator is not None:
        order = generator.random((orders, len(blocks))).argsort(axis=1)
        values, weights = blocks.values[order], blocks.weights[order]
    return largest_fall(values, weights, shortest)[0]


def _fall_of(table: PartsTable, part: Part, measure: str, series: Series) -> Spans | None:
    """The windows of a fall that is large, lasts to the end, is more than that of the other problems, and is not
    answered by a lower reward; None without one.
    """
    shortest = shortest_of(len(series))
    spans = widest_fall(*series.in_blocks(shortest))
    width = min(series.count(*spans.after), len(series) // 2)
    last = Spans(spans.before, (int(series.steps[-width]), int(series.ends[-1])))
    if spans.before[1] >= last.after[0]:
        return None
    to_last = estimated_change(series, last, SHOWN)
    if to_last.mean > -LOST or to_last.high >= 0 or measured(series, shortest).mean > -LOST:
        return None
    of_rest, _ = change_between(table.series(~part.rows, measure), last)
    if not of_rest >= SHARED * to_last.mean:  # nor where there are no others
        return None
    if measure in TRUTHS and to_last.mean <= -LOST_ANYHOW:
        return last
    paid = estimated_change(table.series(part.rows, "reward"), last, SHOWN)
    return last if paid.high >= 0 else None  # nothing is said where nothing is paid


def _lost(table: PartsTable, test: tuple[Part, str, Series], spans: Spans, probability: float) -> LostPart:
    part, measure, series = test
    later, reward = series.where(series.steps >= spans.before[0]), table.series(part.rows, "reward")
    since = int(later.steps[largest_split(-later.values, later.weights)])
    levels = ((spans.before[0], since - 1), (since, spans.after[1]))
    before, after, paid_before, paid_after = (one.mean(*level) for one in (series, reward) for level in levels)
    return LostPart(part, measure, since, before, after, paid_before, paid_after, probability)


def _without_echoes(table: PartsTable, lost: Sequence[LostPart], told: Bool[ndarray, " G"]) -> list[LostPart]:
    """Those, the clearest first, that are still lost without the rows of those before them, and without those `told`
    already.
    """
    kept: list[LostPart] = []
    for one in lost:
        series = table.series(one.part.rows & ~told, one.measure)
        change = series.mean(one.since, int(table.steps[-1])) - series.mean(int(table.steps[0]), one.since - 1)
        if change <= -LOST / 2:
            kept.append(one)
            told = told | one.part.rows
    return kept


class PartsAlarm:
    """Looks at the parts of a run while it trains, without labels of its answers. It may go off in the share `ERROR` of
    honest runs, of whatever length.

    Its state is that of the rollouts that it has been given, so a resumed run gives it those of its earlier steps.
    """

    def __init__(self) -> None:
        self.record = PartsRecord()
        self.seen: list[tuple[int, LostPart]] = []
        """What was seen, each with the step of the look that saw it first."""
        self._steps = 0

    def observe(self, step: int, groups: Sequence[Mapping[str, Any]]) -> list[str]:
        """Add the recorded groups of a step. Returns a sentence for each part of which a sign has been seen so far."""
        self.record.add(step, groups)
        self._steps += 1
        if self._steps in LOOKS:
            known = {(lost.part.name, lost.measure) for _, lost in self.seen}
            found = lost_parts(self.record.table(), SIGNS, ERROR / MOST_LOOKS, known)
            self.seen += [(step, lost) for lost in found]
        return [lost.sentence for _, lost in self.seen]
