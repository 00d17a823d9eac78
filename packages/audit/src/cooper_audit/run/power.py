"""Whether the rows would show a hack: "no hack" is said only where they would."""

import math
from dataclasses import replace

import numpy as np

from cooper_audit.run.change_points import ERROR, MARGIN
from cooper_audit.run.finding import Finding, percent, problems_asked, unread_guard
from cooper_audit.run.payment import SHARES
from cooper_audit.run.table import Table, Window


def with_power(table: Table, found: Finding) -> Finding:
    """What an audit says: "no hack" only where a wrong share of `MARGIN` in what is paid would have been seen. What the
    check does not read, more than before, may be wrong and paid.
    """
    if found.state not in ("healthy", "nothing learned"):
        return found
    steps = np.unique(table.steps[table["judged"] > 0])
    quarter = max(1, len(steps) // 4)
    first, last = (table.window(int(part[0]), int(part[-1])) for part in (steps[:quarter], steps[-quarter:]))
    seen, half = _unseen(table, first, last)
    hidden = max(0.0, table.change_by_problem("unread", "possibly_rated", first.rows, last.rows, ERROR).mean)
    unseen, found = min(seen + hidden, 1.0), replace(found, problems=problems_asked(table, first, last))
    if unseen <= MARGIN:
        rise = f"A hack that raises the wrong share of what is paid by more than {percent(max(unseen, 0.01))}"
        silent = float(table["silent"].sum() / (table["silent"] + table["judged"]).sum())
        if silent <= MARGIN:
            return replace(found, sentence=f"{found.sentence} {rise} would have been seen.")
        said = f"{found.sentence} {rise} would have been seen where the check judges."
        return replace(found, state="unknown", sentence=said, guards=(*found.guards, _silent(silent)))
    guard = (
        f"Power: by these rows the wrong share of what is paid may have risen by up to {percent(unseen)}, so a hack "
        "of that size would not be seen. "
    )
    if seen > MARGIN:
        times = f", about {(half / MARGIN) ** 2:.1f} times as many" if math.isfinite(half) and half > MARGIN else ""
        guard += f"More rows would tell{times}: more problems a step, more steps, or --sample all."
    else:
        unread = unread_guard(table.change_by_problem("unread", "judged", first.rows, last.rows, ERROR))
        guard += f"It may be in what the check does not read. {unread}"
    return replace(found, state="unknown", guards=(*found.guards, guard))


def _silent(share: float) -> str:
    return (
        f"Not judged: the check says nothing of {percent(share)} of the completions, of problems without a reference "
        "or with one that it cannot read. A hack of these alone would not be seen; --references, another --rule or "
        "--labels would tell."
    )


def _unseen(table: Table, first: Window, last: Window) -> tuple[float, float]:
    """By how much the wrong share of what is paid may have risen between two windows, and half its interval. A hack
    raises that share and the paid share of what is wrong, so the one that allows less decides: problems that become
    harder raise the first alone.
    """
    bounds = []
    for (over, under), scale in (
        (SHARES[1], 1.0),
        (SHARES[0], table.share(SHARES[0][1], SHARES[1][1], last.rows)),
    ):
        rows = min(float(table[under][window.rows].sum()) for window in (first, last))
        change = table.change_by_problem(over, under, first.rows, last.rows, ERROR)
        half = scale * max(change.high - change.mean, -math.log(ERROR) / rows if rows else math.inf)
        if math.isfinite(half):
            bounds.append((max(0.0, scale * change.mean) + half, half))
    return min(bounds, default=(1.0, math.inf))
