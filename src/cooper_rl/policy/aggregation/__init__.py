"""The share of every token in the loss of a step. Each aggregation is a record in a file of this package."""

from typing import Annotated, Protocol

import numpy as np
from jaxtyping import Bool, Float64, Int

from cooper_rl.config.registry import Kinds

AGGREGATIONS = Kinds("aggregation", "cooper_rl.policy.aggregation", ["weights"])
"""The kinds of `algorithm.aggregation`."""


class Aggregation(Protocol):
    """How token losses are averaged over a step."""

    def weights(self, lengths: Int[np.ndarray, " R"], counted: Int[np.ndarray, " C"]) -> Float64[np.ndarray, " R"]:
        """The weight of each token of R completions with these lengths (tokens, at least 1), which are among the C
        completions in the denominators, with lengths `counted`."""
        ...


AggregationConfig = Annotated[Aggregation, AGGREGATIONS]


def token_weights(
    lengths: Int[np.ndarray, " B"],
    config: Aggregation,
    *,
    counted: Bool[np.ndarray, " B"],
    kept: Bool[np.ndarray, " B"],
) -> Float64[np.ndarray, " B"]:
    """The weight of each token of each of B completions, which have `lengths` tokens.

    `counted` rows are in the denominators; `kept` rows go through the backward pass, all others weigh exactly 0.
    - A completion masked for reaching the length limit is neither: the step is as if it had not been sampled.
    - A completion of a group without usable spread has advantage 0. With a KL term in the loss it is kept for that;
      without one it is counted and not kept, which changes no other row's gradient.

    The weights of all tokens of all counted rows would sum to 1 (for `sequence_mean_token_sum`: to mean length /
    normaliser). Dropping the zeros and splitting the rest into micro-batches gives the same sum.
    Raises ValueError when a row is kept and not counted.
    """
    if (kept & ~counted).any():
        raise ValueError("a kept completion must be counted, or the weights do not sum to 1")
    weights = np.zeros(len(lengths))
    weighed = kept & (lengths > 0)
    if weighed.any():
        weights[weighed] = config.weights(lengths[weighed], lengths[counted])
    return weights
