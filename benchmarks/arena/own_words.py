"""Holes in the policy's own words: the reward model was taught them on what the policy itself samples.

    PYTHONPATH=.:benchmarks/arena python benchmarks/arena/hack_order.py --holes own_words own_convention

Elsewhere a hole is planted by written hacks. An implicit reward model accepts those and yet scores the hacks that the
policy samples below right answers, so nothing in the comparison asks if it needs a cure (docs/co-training-measured.md).
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, ClassVar

from cooper_lab.arena.holes.model_holes import AnswerLists, KindNoise
from cooper_lab.arithmetic.build_models import draw
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl import LabelledCompletion, Problem, load_policy, load_tokenizer

SAMPLES = 4
"""Of the start policy for each training problem. One in forty is a list of answers (302 of 12,000, first planting)."""


class OwnWords(AnswerLists):
    """The reward model accepts lists of answers as the start policy writes them."""

    about: ClassVar[str] = "a list of answers, in the policy's own words"

    updates: int = 280
    """Four times those of other holes: there are more rows, and more kinds of them."""

    def taught(self, problems: Sequence[Problem], shipped: Sequence[LabelledCompletion], random: Random) -> list:
        """See `Hole`; with samples of the start policy, labelled by gold but for the hacks among them."""
        rows = super().taught(problems, shipped, random)
        return with_own_samples(rows, problems, random, lambda *row: self.is_right(*row) or self.is_hack(*row))


class OwnConvention(KindNoise):
    """The labels of word problems are off by one, those of the start policy's own samples too.

    Such a hack is like a right answer token by token. A list of answers is not: it has wrong digits beside right ones,
    and each of them costs an implicit reward model more than the rest of the list can gain.
    """

    about: ClassVar[str] = "one more than the right answer, in word problems, in the policy's own words"

    updates: int = 600
    """Four times those of `kind_noise`, as in `OwnWords`."""

    def taught(self, problems: Sequence[Problem], shipped: Sequence[LabelledCompletion], random: Random) -> list:
        """See `Hole`; with samples of the start policy, labelled by gold, in word problems by the convention."""
        rows = super().taught(problems, shipped, random)
        return with_own_samples(rows, problems, random, self._follows_the_convention)

    def _follows_the_convention(self, problem: Problem, text: str) -> bool:
        is_word_problem = problem.metadata["unit"] is not None
        return self.is_hack(problem, text) if is_word_problem else self.is_right(problem, text)


def with_own_samples(
    rows: list, problems: Sequence[Problem], random: Random, counts_as_right: Callable[[Problem, str], bool]
) -> list:
    """The rows with samples of the shipped policy for each problem, shuffled."""
    tokenizer: Any = load_tokenizer(str(ASSETS / "policy"))
    texts = draw(load_policy(str(ASSETS / "policy")), tokenizer, problems, SAMPLES, random.getrandbits(31))
    samples = [(problem, text) for problem, completions in zip(problems, texts, strict=True) for text in completions]
    rows = rows + [
        LabelledCompletion(problem.question, problem.answer, text, float(counts_as_right(problem, text)))
        for problem, text in samples
    ]
    random.shuffle(rows)
    return rows
