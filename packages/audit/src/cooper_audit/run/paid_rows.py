"""What wrong rows are paid beside right ones, group after group."""

from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np

PAYMENTS = ("compared", "paid_like_right", "paid_less", "wrong_reward")
"""What `payments_of` says of each group: further columns."""
RECENT = 16
"""So many right rows of the last steps stand for those of a group that has none."""

Paid = tuple[Sequence[float], Sequence[float]]
"""Of a group the rewards of its right and of its wrong rows."""


def payments_of(steps: Sequence[Sequence[Paid]]) -> list[list[tuple[float, ...]]]:
    """`PAYMENTS` of each group of each step: how many wrong rows are compared, how many of them are paid like right
    ones (the chance that a right one is paid less, half for a tie), the sum of what they are paid less than the mean of
    the right ones, and the sum of what they are paid.
    """
    recent: deque[float] = deque(maxlen=RECENT)
    payments = []
    for groups in steps:
        for right, _ in groups:
            recent.extend(right)
        others = () if by_group(groups) else recent
        payments.append([compared_with(right or others, wrong) for right, wrong in groups])
    return payments


def by_group(groups: Sequence[Paid]) -> bool:
    """Whether the rewards of each group lie around 0, as if they were normalised by group: then those of one group say
    nothing about another's."""
    paid = [rewards for right, wrong in groups if any(rewards := [*right, *wrong])]
    return bool(paid) and all(min(rewards) < 0 < max(rewards) for rewards in paid)


def compared_with(right: Iterable[float], wrong: Sequence[float]) -> tuple[float, float, float, float]:
    """`PAYMENTS` of a group's wrong rows beside these right ones; zeros if there are none of either."""
    of_right, of_wrong = np.fromiter(right, float), np.asarray(wrong, dtype=float)
    if not len(of_right) or not len(of_wrong):
        return 0.0, 0.0, 0.0, 0.0
    more = of_wrong[:, None] - of_right
    like = (more > 1e-9).sum() + 0.5 * (np.abs(more) <= 1e-9).sum()
    less = -more.sum() / len(of_right)
    return float(len(of_wrong)), float(like / len(of_right)), float(less), float(of_wrong.sum())
