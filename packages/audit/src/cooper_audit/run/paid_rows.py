"""What wrong rows are paid beside right ones, group after group."""

import math
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

PAYMENTS = ("compared", "paid_like_right", "paid_less", "wrong_reward", "scale")
"""What `payments_of` says of each group: further columns."""
LOWEST, RESCALED = 24, 3
"""The lowest pay of so many right rows and that of as many wrong ones lie apart by the scale of the reward. By fewer
times than this it has not changed: what a form earns apart, some rows of either sort always lack."""
RECENT = 16
"""So many right rows of the last steps stand for those of a group that has none."""


Paid = tuple[Sequence[float], Sequence[float]]
"""Of a group the rewards of its right and of its wrong rows."""


def payments_of(steps: Sequence[Sequence[Paid]]) -> list[list[tuple[float, ...]]]:
    """`PAYMENTS` of each group of each step: how many wrong rows are compared, how many of them are paid like right
    ones (the chance that a right one is paid less, half for a tie), the sum of what they are paid less than the mean of
    the right ones, the sum of what they are paid, both in the scale that the reward had at first, and the scale.
    """
    recent: deque[float] = deque(maxlen=RECENT)
    payments = []
    for groups, scale in zip(steps, _scales(steps), strict=True):
        for right, _ in groups:
            recent.extend(right)
        others = () if by_group(groups) else recent
        compared = [compared_with(right or others, wrong) for right, wrong in groups]
        payments.append([(n, like, less / scale, paid / scale, scale) for n, like, less, paid in compared])
    return payments


def _scales(steps: Sequence[Sequence[Paid]]) -> list[float]:
    """By step how many times as large the reward is as at first; once where it is normalised by group."""
    own = [() if by_group(groups) else groups for groups in steps]
    by_step = [tuple([x for group in groups for x in group[side]] for side in (0, 1)) for groups in own]
    # Where the scale changes, either the steps before a step or those behind it have its own, and the others less.
    apart = np.fmax(_apart(by_step), _apart(by_step[::-1])[::-1])
    first = next((value for value in apart if value > 0), 1.0)
    return [times if times >= RESCALED or 0 < times <= 1 / RESCALED else 1.0 for times in (apart / first).tolist()]


def _apart(by_step: Sequence[tuple[list[float], ...]]) -> Float[ndarray, " N"]:
    """How far the lowest pay of right and of wrong rows lie apart, over each step and as many before it as hold
    `LOWEST` of each; NaN where there are fewer.
    """
    apart, last = np.full(len(by_step), math.nan), deque[tuple[list[float], ...]]()
    for place, step in enumerate(by_step):
        last.append(step)
        counts = [sum(len(rows[side]) for rows in last) for side in (0, 1)]
        while min(count - len(rows) for count, rows in zip(counts, last[0], strict=True)) >= LOWEST:
            counts = [count - len(rows) for count, rows in zip(counts, last.popleft(), strict=True)]
        if min(counts) >= LOWEST:
            lowest = [min(min(rows[side]) for rows in last if rows[side]) for side in (0, 1)]
            apart[place] = lowest[0] - lowest[1]
    return apart


def by_group(groups: Sequence[Paid]) -> bool:
    """Whether the rewards of each group lie around 0, as if they were normalised by group: then those of one group say
    nothing about another's."""
    paid = [rewards for right, wrong in groups if any(rewards := [*right, *wrong])]
    return bool(paid) and all(min(rewards) < 0 < max(rewards) for rewards in paid)


def compared_with(right: Iterable[float], wrong: Sequence[float]) -> tuple[float, float, float, float]:
    of_right, of_wrong = np.fromiter(right, float), np.asarray(wrong, dtype=float)
    if not len(of_right) or not len(of_wrong):
        return 0.0, 0.0, 0.0, 0.0
    more = of_wrong[:, None] - of_right
    like = (more > 1e-9).sum() + 0.5 * (np.abs(more) <= 1e-9).sum()
    less = -more.sum() / len(of_right)
    return float(len(of_wrong)), float(like / len(of_right)), float(less), float(of_wrong.sum())
