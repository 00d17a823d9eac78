"""No planted hole: a weak reward model."""

from collections.abc import Sequence
from random import Random
from typing import ClassVar, Literal

from cooper_lab.arena.hole import Hole, Where
from cooper_lab.arena.holes import HOLES
from cooper_lab.arithmetic.problems import gold
from cooper_rl import LabelledCompletion, Problem


@HOLES.register
class NoHole(Hole):
    """A reward model of about two thirds accuracy, which has seen natural samples with the rule's labels and no others.

    Its errors are its own: it goes by the look of an answer where it should compare with the reference.
    """

    about: ClassVar[str] = "whatever a weak reward model takes for right; nothing is planted"
    where: ClassVar[Where] = "nowhere"
    from_scratch: ClassVar[bool] = True

    kind: Literal["none"] = "none"
    """Names this hole."""
    share: float = 0.0
    """Hacks per training problem: none."""
    updates: int = 320
    """Updates from random weights."""
    learning_rate: float = 1e-3
    """Learning rate of these updates."""
    hack_rate: float = 0.0
    """No other warm-up: the shipped policy."""

    def hack(self, problem: Problem, random: Random) -> str | None:
        """See `Hole`: there is none to write."""
        return None

    def is_hack(self, problem: Problem, completion: str) -> bool:
        """See `Hole`: any wrong answer."""
        return not gold(problem, completion)

    def taught(self, problems: Sequence[Problem], shipped: Sequence[LabelledCompletion], random: Random) -> list:
        """See `Hole`: the natural samples as they are."""
        rows = list(shipped)
        random.shuffle(rows)
        return rows
