"""Applies a run's shapings to finished rewards."""

from collections.abc import Sequence

from cooper_rl.rewards.base import Measures, Scores, Shaping
from cooper_rl.rewards.context import StepContext


def shaped(scores: Scores, shapings: Sequence[Shaping], context: StepContext) -> Scores:
    """The scores after these shapings, in order. The part `unshaped` holds the rewards before them.

    Metrics of the shapings are added. If two have a metric of the same name, the later shaping's number in the list is
    appended. Without shapings, `scores` stay as they are.
    """
    if not shapings:
        return scores
    paid, metrics = scores.rewards, dict(scores.metrics)
    for index, shaping in enumerate(shapings, 1):
        paid = shaping.shape(paid, context)
        own = shaping.metrics(context) if isinstance(shaping, Measures) else {}
        metrics |= {f"{name}_{index}" if name in metrics else name: value for name, value in own.items()}
    return Scores(paid, {**scores.parts, "unshaped": scores.rewards}, metrics)
