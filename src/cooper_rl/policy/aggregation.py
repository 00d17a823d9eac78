"""The weight of each token in the loss of a step."""

from typing import Annotated, Literal, Protocol

import numpy as np
from jaxtyping import Bool, Float64, Int
from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.config.registry import Kinds

AGGREGATIONS = Kinds("aggregation", "cooper_rl.policy.aggregation", ["token_weights"])
"""The kinds of `algorithm.aggregation`."""


class Aggregation(Protocol):
    """How token losses are averaged over a step."""

    def token_weights(
        self, lengths: Int[np.ndarray, " R"], counted: Int[np.ndarray, " C"]
    ) -> Float64[np.ndarray, " R"]:
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
        weights[weighed] = config.token_weights(lengths[weighed], lengths[counted])
    return weights


@AGGREGATIONS.register
class TokenMean(Config):
    """Every counted token of the step has the same weight (DAPO, arXiv 2503.14476, eq. 8; used by Cooper)."""

    kind: Literal["token_mean"] = "token_mean"

    def token_weights(
        self, lengths: Int[np.ndarray, " R"], counted: Int[np.ndarray, " C"]
    ) -> Float64[np.ndarray, " R"]:
        return np.full(len(lengths), 1 / counted.sum())


@AGGREGATIONS.register
class SequenceMeanTokenMean(Config):
    """Every counted completion has the same weight, divided among its tokens (GRPO, arXiv 2402.03300, eq. 3).

    Each token of a long wrong answer is punished less than each token of a short one.
    """

    kind: Literal["sequence_mean_token_mean"] = "sequence_mean_token_mean"

    def token_weights(
        self, lengths: Int[np.ndarray, " R"], counted: Int[np.ndarray, " C"]
    ) -> Float64[np.ndarray, " R"]:
        return 1 / (len(counted) * lengths)


@AGGREGATIONS.register
class SequenceMeanTokenSum(Config):
    """Token sums divided by a constant, averaged over counted completions (Dr. GRPO, arXiv 2503.20783, section 3)."""

    kind: Literal["sequence_mean_token_sum"] = "sequence_mean_token_sum"
    normaliser: float = Field(gt=0)
    """The constant, in tokens. It is the same for every step, usually the sampler's `max_tokens`."""

    def token_weights(
        self, lengths: Int[np.ndarray, " R"], counted: Int[np.ndarray, " C"]
    ) -> Float64[np.ndarray, " R"]:
        return np.full(len(lengths), 1 / (len(counted) * self.normaliser))
