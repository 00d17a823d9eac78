"""The weight of each token in the loss of a step. Each aggregation is a record in a file of this package."""

from typing import Annotated, Protocol

import numpy as np
from jaxtyping import Bool, Float64, Int

from cooper_rl.config.registry import Kinds

AGGREGATIONS = Kinds("aggregation", "cooper_rl.policy.aggregation", ["weights"])
"""The kinds of `algorithm.aggregation`."""


class Aggregation(Protocol):
    """How token losses are averaged over a step."""

    def weights(self, lengths: Int[np.ndarray, " R"], counted: Int[np.ndarray, " C"]) -> Float64[np.ndarray, " R"]:
        """For each of R completions, the weight of each of its tokens.

        `lengths` are the completions' lengths in tokens, at least 1. `counted` are the lengths of the C completions in
        the denominators, which include these R.
        """
        ...


AggregationConfig = Annotated[Aggregation, AGGREGATIONS]


def token_weights(
    lengths: Int[np.ndarray, " B"],
    config: Aggregation,
    *,
    counted: Bool[np.ndarray, " B"],
    kept: Bool[np.ndarray, " B"],
) -> Float64[np.ndarray, " B"]:
    """For each of B completions with `lengths` tokens, the weight of each of its tokens.

    `counted` rows are in the denominators. `kept` rows go through the backward pass; all others have weight 0.
    - A completion that is masked for reaching the length limit is neither counted nor kept, as if it had not been
      sampled.
    - A completion of a group without usable spread has advantage 0. It is kept if the loss has a KL term. Otherwise it
      is only counted, which does not change the gradient of any other row.

    If all counted rows are kept, the weights of all their tokens sum to 1 (for `sequence_mean_token_sum`, to mean
    length / normaliser). Dropping rows of weight 0 and splitting the rest into micro-batches does not change the loss.
    Raises ValueError if a row is kept but not counted.
    """
    if (kept & ~counted).any():
        raise ValueError("a kept completion must be counted, or the weights do not sum to 1")
    weights = np.zeros(len(lengths))
    weighed = kept & (lengths > 0)
    if weighed.any():
        weights[weighed] = config.weights(lengths[weighed], lengths[counted])
    return weights
