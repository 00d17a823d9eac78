"""HERON: pairs by several signals in the order of their importance, the first that tells two completions apart.

HERON (arXiv 2309.02632, C by notes). Signals z_1, z_2, ... are ranked. Of two completions that one is better whose
z_1 is higher by more than a margin; if z_1 does not tell them apart, z_2 decides, and so on; if none does, there is no
pair. The reward model learns from these pairs by -log sigmoid(better - worse). The signals here are the rule's verdict
(1 or 0), whether the completion ended by itself (1 or 0), and less its length, with a margin of `shorter` standard
deviations (N in the denominator) of the group's lengths.

Silence: the first signal is 0 for all of such a group, so its form alone decides. That teaches brevity, not truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import pstdev
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from cooper_rl import MadePairs, PairSource, PairSourceConfig

if TYPE_CHECKING:
    from cooper_rl import PairGroup, PairInputs

Signals = tuple[float, ...]


class LexicographicPairs(PairSourceConfig):
    """Pairs of a group's completions, drawn at random, of which the first signal that differs says the better one."""

    metric_names: ClassVar[tuple[str, ...]] = ("pairs/lexicographic_silent",)
    shorter: float = Field(default=1.0, ge=0)
    """By how many standard deviations of the group's lengths a completion must be shorter to be better."""

    def build(self, inputs: PairInputs) -> LexicographicSource:
        return LexicographicSource(inputs.config.pairs_per_problem, self.shorter)


class LexicographicSource(PairSource):
    """Up to `count` pairs of each group. `pairs/lexicographic_silent`: the share of pairs that no verdict decided."""

    def __init__(self, count: int, shorter: float) -> None:
        self._count, self._shorter = count, shorter

    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Any]) -> MadePairs:
        made, silent = [], 0
        for group in groups:
            signals = {text: of_text for text, of_text in zip(group.texts, _signals(group), strict=True) if text}
            margins = (0.0, 0.0, self._shorter * pstdev([len(text) for text in group.texts]))
            texts = list(signals)
            group.random("lexicographic").shuffle(texts)
            for one, other in list(zip(texts[::2], texts[1::2], strict=False))[: self._count]:
                sign = order(signals[one], signals[other], margins)
                if sign:
                    made.append(group.pair(*((one, other) if sign > 0 else (other, one)), "lexicographic"))
                    silent += signals[one][0] == signals[other][0]
        return MadePairs(made, {"pairs/lexicographic_silent": silent / len(made)} if made else {})


def order(first: Signals, second: Signals, margins: Signals) -> int:
    """1 if the first is better by the first signal that differs by more than its margin, -1 if the second, 0 without
    any."""
    for one, other, margin in zip(first, second, margins, strict=True):
        if abs(one - other) > margin:
            return 1 if one > other else -1
    return 0


def _signals(group: PairGroup) -> list[Signals]:
    rows = zip(group.verdicts, group.group.answers, group.texts, strict=True)
    return [(float(said == "correct"), float(answer.stopped), -float(len(text))) for said, answer, text in rows]
