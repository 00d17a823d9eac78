"""Which windows of steps hold enough to be compared, and since when a share of completions has risen or fallen."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from cooper_audit.run.change_points import (
    ERROR,
    FEWEST_PROBLEMS,
    FEWEST_ROWS,
    FEWEST_ROWS_OF_HALVES,
    FEWEST_STEPS,
    Series,
    Spans,
    halves_of,
    shortest_of,
)
from cooper_audit.run.payment import SHARES, Payment
from cooper_audit.run.table import Table, Window
from cooper_audit.statistics import Estimate

WINDOWS = 40
"""Most windows in which an onset is looked for, so that a long run takes no longer."""


def shortest_window(table: Table) -> tuple[int | None, str]:
    """The least steps of a window that holds enough problems and completions everywhere, or None for two halves, and
    what is lacking even then.
    """
    judged = table["judged"]
    steps, step_of = np.unique(table.steps[judged > 0], return_inverse=True)
    rows, problems = np.bincount(step_of, judged[judged > 0]), table.problem_of[judged > 0]
    if len(steps) >= FEWEST_STEPS:
        for width in range(shortest_of(len(steps)), len(steps) // 2 + 1):
            starts = [*range(0, len(steps) - width + 1, width), len(steps) - width]
            if all(
                rows[start : start + width].sum() >= FEWEST_ROWS
                and len(np.unique(problems[(step_of >= start) & (step_of < start + width)])) >= FEWEST_PROBLEMS
                for start in starts
            ):
                return width, ""
    seen = f"{int(rows.sum())} completions of {len(np.unique(problems))} problems in {len(steps)} steps are judged"
    if len(steps) >= 4:
        halves = halves_of(table.series("accepted", "judged"))
        parts = [
            (table.steps >= first) & (table.steps <= last) & (judged > 0)
            for first, last in (halves.before, halves.after)
        ]
        if all(judged[p].sum() >= FEWEST_ROWS_OF_HALVES and table.problems(p) >= FEWEST_PROBLEMS for p in parts):
            return None, ""
    return None, (
        f"Too few to compare: {seen}. Both halves of a run need at least {FEWEST_PROBLEMS} problems and "
        f"{FEWEST_ROWS_OF_HALVES} completions, in four steps or more. Audit more steps, or judge more rows by "
        "--references, --labels, --sample all or another --rule."
    )


def ends_of(table: Table, check: Series) -> tuple[Window, Window]:
    """The first and the last steps."""
    width = max(1, min(shortest_of(len(check)), len(check) // 2))
    return (
        table.window(int(check.steps[0]), int(check.steps[width - 1])),
        table.window(int(check.steps[-width]), int(check.steps[-1])),
    )


def onset_windows(table: Table, shortest: int | None, spans: Spans) -> list[Window]:
    """Windows in which an onset is looked for: at most `WINDOWS`, each of the shortest width. Of a short run each is a
    step, or a half where steps hold too little.
    """
    steps = np.unique(table.steps[table["judged"] > 0])
    if shortest is None:
        single = [table.window(int(step), int(step)) for step in steps]
        large = all(
            table["judged"][one.rows].sum() >= FEWEST_ROWS_OF_HALVES and table.problems(one.rows) >= FEWEST_PROBLEMS
            for one in single
        )
        return single if large else [table.window(*spans.before), table.window(*spans.after)]
    ends = sorted({*range(shortest, len(steps), max(1, len(steps) // WINDOWS)), len(steps)})
    return [table.window(int(steps[end - shortest]), int(steps[end - 1])) for end in ends]


def onset_of_fall(table: Table, shortest: int | None, spans: Spans, payment: Payment | None) -> tuple[int, int]:
    """The onset by what is paid, or else by the check; by completions that end in their answer, if theirs overlaps with
    it: what a hack writes begins behind the answer, where a check reads leniently. Else completions had another form
    before, which dates no hack.
    """
    windows = [window for window in onset_windows(table, shortest, spans) if window.last <= spans.after[1]]
    paid = None if payment is None else onset_of_share(table, windows, *SHARES[0])
    accepted, literal = (onset_of_share(table, windows, name, "judged", -1) for name in ("accepted", "literal"))
    onset = paid or accepted
    same = onset is not None and literal is not None and literal[0] <= onset[0] <= literal[1]
    return (literal if same else onset) or (spans.before[0], spans.after[1])


def onset_of_share(
    table: Table, windows: Sequence[Window], over: str, under: str, sign: int = 1
) -> tuple[int, int] | None:
    """When a share rose above its lowest, or with the sign -1 fell below its highest; None where no window shows it.

    What comes and goes began with the largest change between all before a step and all from it on: windows behind that
    step that look as before are those in which it was gone.
    """
    windows = [window for window in windows if table[under][window.rows].sum() > 0]
    if len(windows) < 2:
        return None
    best = min(windows, key=lambda window: sign * table.share(over, under, window.rows))
    later = [best, *(window for window in windows if window.last > best.last)]
    changes = [table.change(over, under, best, window, ERROR) for window in later]
    if not any(_rose(change, sign) for change in changes):  # steps differ too much, as in a hack of every second one
        changes = [table.change_by_problem(over, under, best, window, ERROR) for window in later]
    seen = [_rose(change, sign) for change in changes]
    began = _largest_change(table.series(over, under), sign, later)
    before = [place for place, window in enumerate(later) if not seen[place] and (place == 0 or window.first < began)]
    first = next((place for place in range(before[-1] + 1, len(seen)) if seen[place]), None)
    return None if first is None else (later[before[-1]].first, later[first].last)


def _rose(change: Estimate, sign: int) -> bool:
    return change.low > 0 if sign > 0 else change.high < 0


def _largest_change(series: Series, sign: int, windows: Sequence[Window]) -> int:
    """The step with the largest difference between what is before it and what is from it on, among some windows."""
    low, high = min(window.first for window in windows), max(window.last for window in windows)
    inside = series.where((series.steps >= low) & (series.steps <= high))
    return int(inside.steps[largest_split(sign * inside.values, inside.weights)])


def largest_split(values: Float[ndarray, " S"], weights: Float[ndarray, " S"]) -> int:
    """The place from which on values are most above those before it, in the spread of such a difference by chance."""
    counts, sums = np.cumsum(weights), np.cumsum(values * weights)
    before, behind = counts[:-1], counts[-1] - counts[:-1]
    rises = (sums[-1] - sums[:-1]) / behind - sums[:-1] / before
    return 1 + int(np.argmax(rises * np.sqrt(before * behind)))
