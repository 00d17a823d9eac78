"""What wrong rows are paid beside right ones, group after group."""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray

PAYMENTS = ("compared", "paid_like_right", "paid_less", "wrong_reward", "like_as_right", "less_as_right")
"""What `payments_of` says of each group: further columns. The last two are what its right rows, as those with which
others without one are compared, add to `paid_like_right` and `paid_less` beyond an average right row. Their sum is 0;
they say how much hangs on which few right rows there are."""
NEAREST = 8
"""At least so many right rows of the nearest steps stand for those of a group that has none."""
SCALED, GROWN, SHRUNK, SHRUNK_ALIKE = 64, 2.0, (0.2, 0.8), 0.05
"""So many right and so many wrong rows show the scale of a reward. It has grown if it is so many times the first, and
shrunk between these, or, where right ones are paid as much less, down to the last; less is no scale, as where nearly
all rows are hacks, or the grader fails."""

TIE = 1e-9
"""Rewards that differ by no more are equal."""

Compared = tuple[float, float, float, float]
"""The first four of `PAYMENTS`."""

Paid = Sequence[Sequence[float]]
"""Of a group the rewards of its right and of its wrong rows and, if there are any, of rows that are right in another
form than the check reads."""


def payments_of(steps: Sequence[Sequence[Paid]]) -> list[list[tuple[float, ...]]]:
    """`PAYMENTS` of each group of each step: how many wrong rows are compared, how many of them are paid like right
    ones (the chance that a right one is paid less, half for a tie), the sum of what they are paid less than the mean of
    the right ones, and the sum of what they are paid. How much less is given in the first scale of the reward.
    """
    right_of = [
        [_Right(reward, step, place) for place, (right, *_) in enumerate(groups) for reward in right]
        for step, groups in enumerate(steps)
    ]
    with_right = [step for step, rows in enumerate(right_of) if rows]
    as_right = [np.zeros((len(groups), 2)) for groups in steps]
    scale = _Scale()
    payments = list[list[Compared]]()
    for step, groups in enumerate(steps):
        is_normalised = by_group(groups)
        times = 1.0 if is_normalised else scale.after(groups)
        near = [] if is_normalised else _nearest(step, with_right, right_of)
        rewards = [row.reward for row in near]
        compared = [_compared(group, rewards) for group in groups]
        payments.append([(count, like, less / times, paid) for (count, like, less, paid), _ in compared])
        beside_near = [group[1] for group, (_, is_near) in zip(groups, compared, strict=True) if is_near]
        wrong = [reward for of_group in beside_near for reward in of_group]
        for row, added in zip(near, _added_by(rewards, wrong), strict=True):
            as_right[row.step][row.group] += added / (1.0, times)
    return [
        [(*group, *added.tolist()) for group, added in zip(groups, of_step, strict=True)]
        for groups, of_step in zip(payments, as_right, strict=True)
    ]


class _Right(NamedTuple):
    """A right row: its reward, and the places of its step and of its group there."""

    reward: float
    step: int
    group: int


def _nearest(place: int, with_right: Sequence[int], right_of: Sequence[Sequence[_Right]]) -> list[_Right]:
    """The right rows of a step, or, where it has fewer than `NEAREST`, also of the steps as near before and behind it:
    earlier ones alone would lack what all rows came to be paid since, such as for a form.
    """
    at = bisect_left(with_right, place)
    steps = with_right[max(0, at - NEAREST) : at + NEAREST]
    rows, farthest = list[_Right](), 0
    for distance, step in sorted((abs(step - place), step) for step in steps):
        if len(rows) >= NEAREST and distance > farthest:
            break
        rows += right_of[step]
        farthest = distance
    return rows


def _added_by(right: Sequence[float], wrong: Sequence[float]) -> Float[ndarray, "R 2"]:
    """What each of some right rows adds to how many wrong ones are paid like them, and to how much less these are paid,
    beyond an average one.
    """
    if not right or not wrong:
        return np.zeros((len(right), 2))
    of_right, of_wrong = np.asarray(right, dtype=float), np.sort(wrong)
    below = of_wrong.searchsorted(of_right - TIE, "left")
    not_above = of_wrong.searchsorted(of_right + TIE, "right")
    like = len(of_wrong) - (below + not_above) / 2
    both = np.stack([like, len(of_wrong) * of_right - of_wrong.sum()], axis=1) / len(of_right)
    return both - both.mean(axis=0)


def _compared(group: Paid, near: Sequence[float]) -> tuple[Compared, bool]:
    """A group beside the rows that the check accepts, its own or those `near`, and beside those that are right in
    another form, whichever wrong rows are paid less like: a reward may not read that form, or pay more for it, right or
    wrong. And whether that is beside rows near.
    """
    right, wrong, *otherwise = group
    results = [compared_with(rewards, wrong) for rewards in (right or near, *otherwise)]
    shares = [like / count if count else math.inf for count, like, *_ in results]
    chosen = shares.index(min(shares))
    return results[chosen], chosen == 0 and not right


class _Scale:
    """How large a reward is, by how much more the lowest tenth of the right rows is paid than that of the wrong ones:
    neither hacks, which are paid most, nor a part for a form that half of the rows earn move that. It becomes smaller
    where a part that pays right answers gets less weight, and not only where the reward tells them apart less: then the
    lowest rows of each, of which half as many are lower still, differ as well.
    """

    def __init__(self) -> None:
        self._paid: tuple[deque[float], deque[float]] = deque(maxlen=SCALED), deque(maxlen=SCALED)
        self._first: tuple[float, float] | None = None
        """The first scale, and the median of the right rows then."""

    def after(self, groups: Sequence[Paid]) -> float:
        """How many times the first scale that of the last rows is; 1 where it has not changed."""
        for right, wrong, *_ in groups:
            self._paid[0].extend(right)
            self._paid[1].extend(wrong)
        if min(map(len, self._paid)) < SCALED:
            return 1.0
        lower, low = (np.array([np.quantile(paid, share) for paid in self._paid]) for share in (0.05, 0.1))
        scale = float(low[0] - low[1])
        usual = float(np.median(self._paid[0]))
        self._first = self._first or (scale, usual)
        first, paid_first = self._first
        times = scale / first if first > 0 else 1.0
        least = SHRUNK_ALIKE if usual < 2 * times * paid_first else SHRUNK[0]
        has_shrunk = least <= times <= SHRUNK[1] and (low - lower).sum() < scale / 2
        return times if times >= GROWN or has_shrunk else 1.0


def by_group(groups: Sequence[Paid]) -> bool:
    """Whether the rewards of each group lie around 0, as if they were normalised by group: then those of one group say
    nothing about another's."""
    paid = [rewards for group in groups if any(rewards := [reward for part in group for reward in part])]
    return bool(paid) and all(min(rewards) < 0 < max(rewards) for rewards in paid)


def compared_with(right: Iterable[float], wrong: Sequence[float]) -> Compared:
    """What `Compared` has of a group's wrong rows beside these right ones; zeros if there are none of either."""
    of_right, of_wrong = np.fromiter(right, float), np.asarray(wrong, dtype=float)
    if not len(of_right) or not len(of_wrong):
        return 0.0, 0.0, 0.0, 0.0
    more = of_wrong[:, None] - of_right
    like = (more > TIE).sum() + 0.5 * (np.abs(more) <= TIE).sum()
    less = -more.sum() / len(of_right)
    return float(len(of_wrong)), float(like / len(of_right)), float(less), float(of_wrong.sum())
