"""Accuracy, precision, recall and false-positive rate, with intervals from resampling whole problems."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from cooper_rl.data.split import problem_key
from cooper_rl.evaluation.estimates import Estimate, wilson_interval

RESAMPLES = 1000
MEASURES = ("accuracy", "precision", "recall", "false_positive_rate")
DENOMINATOR = {"accuracy": 1, "precision": 3, "recall": 4, "false_positive_rate": 6}
"""The column of the counts in `_measures` by which each measure is divided."""


def estimates(
    accepts: Bool[ndarray, " B"], right: Bool[ndarray, " B"], questions: Sequence[str], seed: int = 0
) -> dict[str, Estimate]:
    """Each measure with its 95 % percentile interval (Efron 1979). A measure whose denominator is 0 is left out.

    Problems are drawn with replacement and keep all their completions, because those are not independent. A measure
    that is 0 or 1 would be the same in every draw, so it gets Wilson's interval with its problems as trials.
    """
    keys = [problem_key(question) for question in questions]
    _, problem = np.unique(keys, return_inverse=True)
    problems = int(problem.max()) + 1
    true_positive, false_positive = accepts & right, accepts & ~right
    columns = [accepts == right, np.ones_like(right), true_positive, accepts, right, false_positive, ~right]
    counts = np.stack([np.bincount(problem, column, problems) for column in columns], axis=1)
    draws = np.random.default_rng(seed).multinomial(problems, np.full(problems, 1 / problems), size=RESAMPLES)
    whole, resampled = _measures(counts.sum(axis=0)), _measures(draws @ counts)
    found = {}
    for name in MEASURES:
        value = float(whole[name])
        if value in (0.0, 1.0):
            counted = int((counts[:, DENOMINATOR[name]] > 0).sum())
            found[name] = Estimate(value, *wilson_interval(value, counted))
        elif not np.isnan(value):
            low, high = np.nanquantile(resampled[name], [0.025, 0.975])
            found[name] = Estimate(value, float(low), float(high))
    return found


def _measures(counts: Float[ndarray, "... 7"]) -> dict[str, Float[ndarray, "..."]]:
    agree, rows, true_positive, accepted, right, false_positive, wrong = np.moveaxis(counts, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "accuracy": agree / rows,
            "precision": true_positive / accepted,
            "recall": true_positive / right,
            "false_positive_rate": false_positive / wrong,
        }
