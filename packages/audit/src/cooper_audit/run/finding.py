"""What the evidence says of a run, and how its figures are put in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from cooper_audit.run.change_points import MARGIN
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


def signed(change: Estimate) -> str:
    return f"{change.mean:+.2f} [{change.low:+.2f}, {change.high:+.2f}]"
