"""Which windows of steps hold enough to be compared."""

import numpy as np

from cooper_audit.run.change_points import (
    FEWEST_PROBLEMS,
    FEWEST_ROWS,
    FEWEST_ROWS_OF_HALVES,
    FEWEST_STEPS,
    Series,
    halves_of,
    shortest_of,
)
from cooper_audit.run.table import Table, Window


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
