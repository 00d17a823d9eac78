"""What the rewards of judges have in common: they ask once per context, and fill in what was not heard."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from cooper_rl.rewards.base import Scores
from cooper_rl.rewards.judging.questioner import Questioner, Tally, with_means

if TYPE_CHECKING:
    from cooper_rl.rewards.context import StepContext
    from cooper_rl.rewards.judging.config import JudgeServer

Heard = list[list[float | None]]
"""A number for each answer of each group; None where the judge was not heard."""


class JudgedReward:
    """A reward from a judge. Each kind implements `_judge`."""

    def __init__(self, server: JudgeServer) -> None:
        self._questioner = Questioner(server)

    def score(self, context: StepContext) -> Scores:
        """The judge's numbers (the part `judge`), with the group's mean where it was not heard; see `with_means`.

        The part `judge_heard` is 1.0 where it was heard. The metric `judge/unheard` is the share of the other answers;
        for the rest see `Tally`. The answers of a context are judged once, also if a reward model learns in between.
        """
        values, metrics = context.once(self, lambda: self._ask(context))
        judged = context.ragged([value for row in with_means(values) for value in row])
        heard = context.ragged([float(value is not None) for row in values for value in row])
        metrics = {**metrics, "judge/mean": judged.flat.mean().item()}
        return Scores(judged, {"judge": judged, "judge_heard": heard}, metrics)

    def close(self) -> None:
        """Close the connections."""
        self._questioner.close()

    def _ask(self, context: StepContext) -> tuple[Heard, dict[str, float]]:
        tally = Tally()
        values = self._judge(context, tally)
        flat = [value for row in values for value in row]
        unheard = sum(value is None for value in flat) / max(1, len(flat))
        return values, {"judge/unheard": unheard, **tally.metrics()}

    @abstractmethod
    def _judge(self, context: StepContext, tally: Tally) -> Heard:
        """One number for each answer of each group."""
