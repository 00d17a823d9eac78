"""A source of pairs and a filter of your own: what the reward model learns from.

In YAML: cooptimization: {pairs: [{kind: "pair_source:SecondAnswer"}, {kind: "pair_source:ShortPairs", longest: 80}]}
"""

from collections.abc import Sequence
from typing import Any

from cooper_rl import (
    MadePairs,
    Pair,
    PairFilter,
    PairFilterConfig,
    PairGroup,
    PairInputs,
    PairSource,
    PairSourceConfig,
    RewardModel,
)
from cooper_verify import Rule


class SecondAnswer(PairSourceConfig):
    """Pairs of a right completion and the same one with another answer behind it."""

    words: str = " or {}"
    """What follows the completion."""

    def build(self, inputs: PairInputs) -> "SecondAnswerSource":
        """The source. `inputs` also holds the settings of `cooptimization` and the assistant."""
        return SecondAnswerSource(self.words, inputs.rule)


class SecondAnswerSource(PairSource):
    """Makes a pair of every group with a positive. `start`, which begins slow work, has nothing to do here."""

    def __init__(self, words: str, rule: Rule) -> None:
        self._words, self._rule = words, rule

    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Any]) -> MadePairs:
        """The pairs whose negative the rule rejects. A random number depends on the seed, the step and the problem."""
        made: list[Pair] = []
        for group in groups:
            for positive in group.positives[:1]:
                wrong = positive + self._words.format(group.random("second answer").randrange(100))
                if self._rule.verify_problems([(group.problem, wrong)]) == ["wrong"]:
                    made.append(group.pair(positive, wrong, "second_answer"))
        return MadePairs(made, {"part/second_answers": float(len(made))})


class ShortPairs(PairFilterConfig):
    """Leaves out pairs with a long negative."""

    longest: int = 80
    """Most characters of a negative."""

    def build(self, inputs: PairInputs) -> "ShortPairsFilter":
        """The filter."""
        return ShortPairsFilter(self.longest)


class ShortPairsFilter(PairFilter):
    """A filter may also change `weight` with `dataclasses.replace`. One that keeps state has `state` and `restore`."""

    def __init__(self, longest: int) -> None:
        self._longest = longest

    def filter(self, pairs: Sequence[Pair], model: RewardModel) -> tuple[list[Pair], dict[str, float]]:
        """The pairs to learn from, and metrics."""
        short = [pair for pair in pairs if len(pair.negative) <= self._longest]
        return short, {"part/long_pairs": float(len(pairs) - len(short))}


if __name__ == "__main__":
    from tiny_run import train

    run = train(kind="cooper", cooptimization={"pairs": [SecondAnswer(), ShortPairs(longest=80)]})
    print("own pair source:", run.metrics["part/second_answers"], repr(run.pairs[0]["negative"]))
