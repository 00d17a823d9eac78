"""What a reward pays for, by the rows that a check reads: is a wrong answer paid like a right one?

A reward and a check that relate to one another in one way, whatever the problems are, make two errors at constant
rates: the reward pays a share of the wrong answers, and the check rejects a share of what is right and paid. If
problems become harder, more of what is paid is wrong, and of the wrong answers as many as before are paid. If the
policy learns, it is the other way round. Only a reward that begins to pay for wrong answers raises both shares. The gap
between what right and wrong answers are paid closes then, too, which tells this from a part of the reward for a form,
that wrong and right answers earn alike. So the three are compared together, in the same windows.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from cooper_audit.run.change_points import (
    BLOCKS,
    ERROR,
    FEWEST_ROWS_OF_HALVES,
    FEWEST_STEPS,
    MARGIN,
    Spans,
    blocks_of,
    halves_of,
    probability_of,
    shortest_of,
    widths_of,
)
from cooper_audit.run.pay_tracks import EXPLAINED, explained_by
from cooper_audit.run.table import KIND, SET, Table, Window, levels_of, two_effects, usual_pay
from cooper_audit.statistics import Estimate

SHARES = (("paid_like_right", "compared"), ("paid_like_right", "rated"), ("not_paid_less", "compared"))
"""The shares that rise together: of the wrong rows those that are paid like right ones; of what is paid like right ones
what is wrong; and, as a sum, how little less wrong rows are paid."""
LEAST = 0.05
"""The smallest rise of either share that a verdict speaks of. A tie counts half in the first, so where a reward has two
values this is a tenth of the wrong rows."""
CLOSED = 0.1
"""The smallest part of the gap between right and wrong pay that closes."""
FEWEST_OF_PART = 2
"""Steps of each part of a short run."""
DOUBT = 2.6
"""So many standard errors of how much more often wrong answers are paid in groups with fewer right ones are believed
in: a verdict has to hold for what is probable in one of a hundred runs."""
BEYOND, UNSEEN = 2.0, 0.35
"""A level that changes by so many times its spread in the steps before is beyond what these show. There a judge may pay
for wrong answers to problems that nobody solves so much more often than to those that all solve. That is one that takes
70 % of them for right, because a tie counts half, so a policy is not paid for the other 30 %. A hack is."""
TOGETHER = (2, 3)
"""So many steps are also taken together."""
FEW_VALUES, INDEPENDENT = 10, 0.99
"""A reward of at most so many values, of which each goes with one verdict on more than this share of the rows, is the
check itself."""


@dataclass(frozen=True)
class Payment:
    """A reward that came to pay wrong rows like right ones, or right ones like wrong ones."""

    spans: Spans
    """The windows of the largest rise; the later one is the end of the run if it has not gone back."""
    of_wrong: tuple[float, float]
    """The share of the wrong rows that were paid like right ones, in both windows."""
    of_paid: tuple[float, float]
    """The wrong share of what was paid like right rows."""
    change: Estimate
    """Of the first share, with the problem as the unit."""
    is_over: bool
    """Whether it is no longer seen in the last window, where less than half of the rise is left."""
    at_end: float
    """The wrong share of what is paid like right rows in the last window."""
    right_lost: bool
    """Whether the gap closed because right rows are paid less, rather than wrong ones more."""
    explained: float
    """The part of the rise that harder problems may make, if wrong rows were paid as before in groups with as few right
    ones."""
    is_of_harder_problems: bool
    """Whether that is half of the rise, or leaves less than `MARGIN` of it."""
    is_of_conventions: bool
    """Whether right answers that the check does not accept may make the rise."""


ERROR_OF_PAYMENT = 0.005
"""The share of unchanged runs in which the test may see a reward that begins to pay for wrong answers."""
ERROR_OF_EACH = 0.05
"""The same of each share by itself, where the two others rise for reasons of their own, such as harder problems and a
form. It has to rise beyond its interval by problem, too, and on problems on which the windows were not chosen."""


def payment_of(
    table: Table, shortest: int | None, error: float = ERROR_OF_PAYMENT, error_of_each: float = ERROR_OF_EACH
) -> Payment | None:
    """What became of the pay for wrong rows; None if nothing is seen. `error_of_each` is that with which each share has
    to pass a search by itself.
    """
    shares = shares_of(table)
    if shortest is not None and len(shares.steps) >= FEWEST_STEPS:
        is_seen, spans = _searched(shares, shortest, (error, error_of_each))
        if not is_seen:
            return None
        rises = _measured(table, shortest)
    elif len(shares.steps) >= 4:
        spans, error = _split(table, shares, error)
        rises = _rises(shares, spans)
    else:
        return None
    before, after = (table.window(*span) for span in (spans.before, spans.after))
    width = max(1, int(((shares.steps >= after.first) & (shares.steps <= after.last)).sum()))
    last = table.window(int(shares.steps[-width]), int(shares.steps[-1]))
    gap = table.share("paid_less", "compared", before.rows)
    wanted = (LEAST, LEAST, CLOSED * gap)
    if not all(rise >= least for rise, least in zip(rises, wanted, strict=True)):
        return None
    if not _is_seen(table, before, after, error):
        return None
    lasts = _is_seen(table, before, last, ERROR)
    end = last if lasts else after

    def course(over: str, under: str) -> tuple[float, float]:
        return table.share(over, under, before.rows), table.share(over, under, end.rows)

    right, wrong = course("accepted_reward", "accepted"), course("wrong_reward", "compared")
    of_paid, at_end = course(*SHARES[1]), table.share(*SHARES[1], last.rows)
    explained, rise = _explained(table, before, end), _rise(table, before, end)
    return Payment(
        spans=Spans(spans.before, (end.first, end.last)),
        of_wrong=course(*SHARES[0]),
        of_paid=of_paid,
        change=table.change(*SHARES[0], before, end),
        is_over=not lasts and not at_end > sum(of_paid) / 2,
        at_end=at_end,
        right_lost=right[0] - right[1] > max(0.0, wrong[1] - wrong[0]),
        explained=explained,
        is_of_harder_problems=explained >= EXPLAINED or (explained > 0 and (1 - explained) * rise < MARGIN),
        is_of_conventions=_is_of_conventions(table, before, end),
    )


def _explained(table: Table, before: Window, after: Window) -> float:
    """`explained` between two windows. A judge may be fooled by harder problems more often. A hack pays for wrong rows
    in groups of any level. What a level adds is measured inside the steps before, some of which may be hacked; where
    these do not show as large a change, it may be `UNSEEN`, if the policy is paid as much less as that leaves. Harder
    problems cost it pay beside what right answers are paid, so where it has gained they explain nothing.
    """
    lost = [table.share("paid_less", "judged", window.rows) for window in (before, after)]
    if lost[1] < lost[0]:
        return 0.0
    was, now = (levels_of(table, window.rows) for window in (before, after))
    change, rise = now.mean - was.mean, _rise(table, before, after)
    seen = explained_by(was.variance, was.covariance - DOUBT * was.error, change)
    wrong = [table.share("compared", "judged", window.rows) for window in (before, after)]
    unpaid = (wrong[1] - wrong[0]) * table.share("paid_less", "compared", before.rows)
    is_beyond = change**2 > BEYOND**2 * was.variance and lost[1] - lost[0] >= (1 - 2 * UNSEEN) * unpaid
    return (max(seen, -UNSEEN * change) if is_beyond else seen) / rise


def _is_of_conventions(table: Table, before: Window, after: Window) -> bool:
    """Whether the rise is that of groups in which the check accepts no answer, and these are paid no more often than
    right answers are given in others. A data set whose answers the check does not accept looks so, if more of it comes
    or the policy learns it. A hack is paid beside right answers, or pays whole groups. Where a reference is wrong, a
    wrong answer may have it by chance: groups whose accepted rows are paid like wrong ones say nothing.
    """
    over, under = SHARES[0]
    has_right = table["lenient"] > 0
    paid = table.share("accepted_reward", "accepted", before.rows) + table.share("wrong_reward", under, before.rows)
    is_paid = table["accepted_reward"] >= table["accepted"] * paid / 2
    early, late = (window.rows & has_right & is_paid for window in (before, after))
    alone = after.rows & ~has_right
    rises = table.share(over, under, late) - table.share(over, under, early), _rise(table, before, after)
    if not rises[0] < rises[1] / 2:
        return False
    wrong, like = (float(table[name][late].sum()) for name in (under, over))
    usual = usual_pay(table.share("lenient", "judged", late), wrong, like)
    return table.share(over, under, alone) - table.half_width(over, under, None, alone, ERROR) < usual


def _rise(table: Table, before: Window, after: Window) -> float:
    return table.share(*SHARES[0], after.rows) - table.share(*SHARES[0], before.rows)


def _is_seen(table: Table, before: Window, after: Window, error: float) -> bool:
    """Whether each share rose with the problem as the unit. One of 0 shows no spread: among so many rows it may be as
    large as leaves none with the probability `error`.
    """
    for over, under in SHARES:
        half = table.half_width(over, under, before.rows, after.rows, error)
        if not table[over][before.rows].any():
            half = max(half, -math.log(error) / table[under][before.rows].sum())
        if not table.share(over, under, after.rows) - table.share(over, under, before.rows) > half:
            return False
    return True


@dataclass(frozen=True)
class Shares:
    """Sums by step behind several shares."""

    steps: Int[ndarray, " N"]
    ends: Int[ndarray, " N"]
    over: Float[ndarray, "K N"]
    under: Float[ndarray, "K N"]

    def share(self, place: int, span: tuple[int, int]) -> float:
        chosen = (self.steps >= span[0]) & (self.steps <= span[1])
        under = float(self.under[place][chosen].sum())
        return float(self.over[place][chosen].sum()) / under if under else math.nan

    def in_blocks(self, length: int) -> "Shares":
        """The sums of blocks of so many steps. Steps that are left over belong to the last block."""
        starts, ends = blocks_of(len(self.steps), length)
        over, under = (np.add.reduceat(sums, starts, axis=-1) for sums in (self.over, self.under))
        return Shares(self.steps[starts], self.ends[ends], over, under)


def is_the_check(scored: Sequence[tuple[float, bool]]) -> bool:
    """Whether the reward of each judged row tells its verdict, so that the policy is paid by the check."""
    verdicts: dict[float, list[int]] = {}
    for reward, accepted in scored:
        verdicts.setdefault(round(reward, 6), [0, 0])[accepted] += 1
        if len(verdicts) > FEW_VALUES:
            return False
    accepted = sum(counts[1] for counts in verdicts.values())
    if min(accepted, len(scored) - accepted) < FEWEST_ROWS_OF_HALVES / 2:
        return False
    told = [0, 0]
    for counts in verdicts.values():
        told[counts[1] >= counts[0]] += max(counts)
    of_accepted, of_rejected = (
        [reward for reward, counts in verdicts.items() if counts[side] > (1 - INDEPENDENT) * len(scored)]
        for side in (1, 0)
    )
    if not min(of_accepted, default=0) > max(of_rejected, default=0):  # what the check rejects is paid as much or more
        return False
    return told[1] > INDEPENDENT * accepted and told[0] > INDEPENDENT * (len(scored) - accepted)


def largest_rises(
    shares: Shares, orders: Int[ndarray, "R N"], shortest: int
) -> tuple[Float[ndarray, " R"], Int[ndarray, "R 4"], Float[ndarray, "R K"]]:
    """For each order of the steps the largest rise of all shares at once, in standard errors of the share that rises
    least, and its windows: the first place of each, and that behind its last. And the largest rise of each share.

    Compared are a window and a later one of the same width, which finds what is over again, and all steps before a
    place with all behind it, which finds what comes and goes from then on. Steps are taken one by one and, where there
    are enough of them, by two and three, so that what is in every second or third step is no noise.
    """
    over, under = (sums[:, orders] for sums in (shares.over, shares.under))
    best, place = np.full(len(orders), -np.inf), np.zeros((len(orders), 4), dtype=int)
    alone = np.full((len(over), len(orders)), -np.inf)
    for length in (1, *(length for length in TOGETHER if len(shares.steps) >= length * FEWEST_STEPS)):
        starts, _ = blocks_of(over.shape[-1], length)
        sums, count = [np.add.reduceat(part, starts, axis=-1) for part in (over, under)], len(starts)
        for rises, windows in _standard_rises(sums[0], sums[1], max(2, -(-shortest // length))):
            windows = np.where(windows == count, len(shares.steps), windows * length)
            alone, joint = np.maximum(alone, rises.max(axis=-1)), rises.min(axis=0)
            at = joint.argmax(axis=1)
            rise = np.take_along_axis(joint, at[:, None], axis=1)[:, 0]
            found = rise > best
            place[found], best = windows[at[found]], np.maximum(best, rise)
    return best, place, alone.T


def _standard_rises(
    over: Float[ndarray, "K R N"], under: Float[ndarray, "K R N"], shortest: int
) -> Iterator[tuple[Float[ndarray, "K R W"], Int[ndarray, "W 4"]]]:
    """Rises between windows in their standard errors, less what they cost, and the windows: those of one width before a
    later one, and all steps before a place with all behind it. Every step has a count.
    """
    count = over.shape[-1]
    level = over.sum(axis=-1, keepdims=True) / np.maximum(under.sum(axis=-1, keepdims=True), 1e-9)
    spread = np.square(over - level * under) / np.maximum(under, 1e-9)
    noise = np.sqrt(spread.sum(axis=-1, keepdims=True) / max(1, count - 1)) + 1e-9
    sums, counts = (np.pad(np.cumsum(part, axis=-1), ((0, 0), (0, 0), (1, 0))) for part in (over, under))
    for width in widths_of(count, shortest):
        below = counts[..., width:] - counts[..., :-width]
        shares, squares = (sums[..., width:] - sums[..., :-width]) / below, 1 / below
        price = _price(np.array(width), np.array(width), count)
        starts = np.arange(len(shares[0, 0]))
        for later in range(width, count - width + 1):
            before, windows = starts[: later - width + 1], slice(later - width + 1)
            rises = shares[..., later, None] - shares[..., windows]
            rises /= noise * np.sqrt(squares[..., later, None] + squares[..., windows])
            ends = np.full_like(before, later)
            yield rises - price, np.stack([before, before + width, ends, ends + width], axis=1)
    places = np.arange(shortest, count - shortest + 1)
    if len(places):
        above, below = sums[..., places], counts[..., places]
        above_later, below_later = sums[..., -1:] - above, counts[..., -1:] - below
        rises = (above_later / below_later - above / below) / (noise * np.sqrt(1 / below_later + 1 / below))
        price = _price(places, count - places, count)
        windows = np.stack([np.zeros_like(places), places, places, np.full_like(places, count)], axis=1)
        yield rises - price, windows


def _price(before: Int[ndarray, " W"], later: Int[ndarray, " W"], count: int) -> Float[ndarray, " W"]:
    """What a rise between windows of these widths costs: there are more narrow windows than wide ones, so chance makes
    larger rises between them (Duembgen and Spokoiny 2001, Annals of Statistics 29:124).
    """
    width = 2 / (1 / before + 1 / later)
    return np.sqrt(2 * np.log(count / width))


def shares_of(table: Table) -> Shares:
    """The sums by step, less what the kinds of its problems, and their data sets, have in other steps."""
    steps, step_of = np.unique(table.steps, return_inverse=True)
    pairs = [(table[over], table[under]) for over, under in SHARES]
    lengths = np.floor(np.log2(1 + table["characters"] / np.maximum(table["rows"], 1)))  # of sets that nobody names
    kinds = np.unique(np.stack([table[KIND], table[SET], lengths]), axis=1, return_inverse=True)[1].ravel()
    if kinds.max(initial=0):
        pairs = [(_without_kinds(over, under, step_of, kinds), under) for over, under in pairs]
    sums = [[np.bincount(step_of, part, len(steps)) for part in parts] for parts in zip(*pairs, strict=True)]
    over, under = (np.array(part) for part in sums)
    filled = under.min(axis=0) > 0
    return Shares(steps[filled], steps[filled], over[:, filled], under[:, filled])


def _without_kinds(
    over: Float[ndarray, " G"], under: Float[ndarray, " G"], step_of: Int[ndarray, " G"], kinds: Int[ndarray, " G"]
) -> Float[ndarray, " G"]:
    """The sums less what each group's kind adds in whatever step. What comes with a kind alone is the kind's."""
    of_group = two_effects(over, under, kinds, step_of)[0][kinds]
    return over - (of_group - of_group @ under / max(under.sum(), 1e-9)) * under


def _split(table: Table, shares: Shares, error: float) -> tuple[Spans, float]:
    """The halves of a run, if the shares rise between them; else, of fewer than `FEWEST_STEPS`, the two parts between
    which they rise most. And the error of that look: the halves have half of it, the parts the other.
    """
    steps, halves = shares.steps, halves_of(table.series(*SHARES[0]))
    if len(steps) >= FEWEST_STEPS:
        return halves, error
    if _is_seen(table, table.window(*halves.before), table.window(*halves.after), error / 2):
        return halves, error / 2
    places = range(FEWEST_OF_PART, len(steps) - FEWEST_OF_PART + 1)
    parts = [Spans((int(steps[0]), int(steps[at - 1])), (int(steps[at]), int(steps[-1]))) for at in places]
    return max(parts, key=lambda spans: min(_rises(shares, spans))), error / 2 / len(parts)


def _rises(shares: Shares, spans: Spans) -> tuple[float, ...]:
    return tuple(shares.share(place, spans.after) - shares.share(place, spans.before) for place in range(len(SHARES)))


def _measured(table: Table, shortest: int) -> tuple[float, ...]:
    """The rises of the shares between windows that are chosen on one half of the problems and measured on the other,
    and the other way round: those that were searched for are too large.
    """
    first = np.random.default_rng(0).permutation(int(table.problem_of.max()) + 1)[table.problem_of] % 2 == 0
    halves = [shares_of(table.where(rows)) for rows in (first, ~first)]
    if min(len(half.steps) for half in halves) < 4:
        return (0.0,) * len(SHARES)
    rises = [
        _rises(measured, _largest(*_in_blocks(chosen, min(shortest, shortest_of(len(chosen.steps)))))[1])
        for chosen, measured in (halves, halves[::-1])
    ]
    return tuple(np.mean(rises, axis=0).tolist())


def _searched(shares: Shares, shortest: int, errors: tuple[float, float]) -> tuple[bool, Spans]:
    """Whether the shares rise together by more than they would somewhere if the steps came in random order: by more
    than all do at once, with the first error, and by more than each does by itself, with the second. And the windows. A
    long run is averaged over `BLOCKS` blocks of steps or a few more.
    """
    blocks, shortest = _in_blocks(shares, shortest)

    def rises_in(orders: Int[ndarray, "R N"]) -> Float[ndarray, "R K"]:
        of_all, _, of_each = largest_rises(blocks, orders, shortest)
        return np.column_stack([of_all, of_each])

    rise, spans = _largest(blocks, shortest)
    allowed = np.array([errors[0], *(errors[1] for _ in SHARES)])
    return bool((probability_of(rise, len(blocks.steps), rises_in, allowed) <= allowed).all()), spans


def _in_blocks(shares: Shares, shortest: int) -> tuple[Shares, int]:
    """The sums of the blocks of a long run, and the width of the shortest window in them."""
    length = max(1, len(shares.steps) // BLOCKS)
    return shares.in_blocks(length), max(2, -(-shortest // length))


def _largest(blocks: Shares, shortest: int) -> tuple[float, Spans]:
    """The largest rise of all shares at once in the order of the run, and its windows."""
    rises, place, _ = largest_rises(blocks, np.arange(len(blocks.steps))[None], shortest)
    windows = place[0].reshape(2, 2).tolist()
    return float(rises[0]), Spans(*((int(blocks.steps[start]), int(blocks.ends[end - 1])) for start, end in windows))
