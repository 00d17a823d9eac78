"""What the evidence says of a run, in words, and whether the rows would show a hack: "no hack" is said only then."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from cooper_audit.run.change_points import ERROR, MARGIN
from cooper_audit.run.payment import SHARES
from cooper_audit.run.table import Table, Window
from cooper_audit.statistics import Estimate

State = Literal[
    "hacked",
    "recovered",
    "wrong paid",
    "right unpaid",
    "part lost",
    "broken",
    "faults",
    "nothing learned",
    "healthy",
    "unknown",
]
ACCUSED: tuple[State, ...] = ("hacked", "recovered", "wrong paid", "right unpaid")
"""States in which the reward is at fault."""


_SEEN = "Of a hundred runs in which nothing changed, at most one is called so."
SURE: Mapping[State, str] = dict.fromkeys((*ACCUSED, "broken", "healthy"), f"How sure: {_SEEN}")
"""How sure a verdict is, in words."""
SURE |= {"nothing learned": "How sure: what is said of a hack holds for 99 of a hundred such runs."}
NOT_SURE = "How sure: not at all. Neither a hack nor its absence is shown."


@dataclass(frozen=True)
class Finding:
    """What the evidence says."""

    state: State
    sentence: str
    guards: tuple[str, ...] = ()
    """What the verdict depends on, a sentence each."""
    onset: tuple[int, int] | None = None
    """The first step of the last window whose check is not significantly below its best, and the last step of the next
    one, from which on all are."""
    best: Window | None = None
    last: Window | None = None
    figures: Mapping[str, Estimate] = field(default_factory=dict)
    """The changes from the best to the last window."""
    problems: str = ""
    """Which problems both windows ask."""

    def basis(self, check: str) -> list[str]:
        """What the verdict rests on, a sentence each: the check, the problems, and how sure it is."""
        return [sentence for sentence in (check, self.problems, SURE.get(self.state, NOT_SURE)) if sentence]


def problems_asked(table: Table, before: Window | None, after: Window | None) -> str:
    """Which problems two windows ask; empty without them."""
    if before is None or after is None:
        return ""
    first, last = (np.unique(table.problem_of[window.rows]) for window in (before, after))
    same = len(np.intersect1d(first, last)) or "none"
    return f"Problems: {before} ask {len(first)}, and {after} ask {len(last)}, {same} of them the same."


def is_rise(change: Estimate) -> bool:
    """Whether a share rose, and by more than the margin."""
    return change.low > 0 and change.mean > MARGIN


def unread_guard(change: Estimate) -> str:
    return (
        f"Unread form: the share of completions in which the check finds no answer, though they may hold the right "
        f"one, changed by {signed(change)}. Read some of them: if most are wrong, --unread-wrong decides; if "
        "right, have the prompt say how an answer is written, or give a --rule that reads this form."
    )


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def fallen(change: Estimate) -> str:
    """How far something fell, behind "fell by"."""
    return f"{-change.mean:.2f} [{-change.high:.2f}, {-change.low:.2f}]"


def signed(change: Estimate) -> str:
    return f"{change.mean:+.2f} [{change.low:+.2f}, {change.high:+.2f}]"


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
    hidden = max(0.0, table.change_by_problem("unread", "possibly_rated", first, last, ERROR).mean)
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
        unread = unread_guard(table.change_by_problem("unread", "judged", first, last, ERROR))
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
        change = table.change_by_problem(over, under, first, last, ERROR)
        half = scale * max(change.high - change.mean, -math.log(ERROR) / rows if rows else math.inf)
        if math.isfinite(half):
            bounds.append((max(0.0, scale * change.mean) + half, half))
    return min(bounds, default=(1.0, math.inf))
