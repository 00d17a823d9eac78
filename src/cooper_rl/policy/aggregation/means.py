"""Means over tokens, over completions, and over a constant length."""

from typing import Literal

import numpy as np
from jaxtyping import Float64, Int
from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.policy.aggregation import AGGREGATIONS


@AGGREGATIONS.register
class TokenMean(Config):
    """Every counted token of the step weighs the same (DAPO, arXiv 2503.14476, eq. 8; used by Cooper)."""

    kind: Literal["token_mean"] = "token_mean"
    """Names this aggregation."""

    def weights(self, lengths: Int[np.ndarray, " R"], counted: Int[np.ndarray, " C"]) -> Float64[np.ndarray, " R"]:
        """See `Aggregation`."""
        return np.full(len(lengths), 1 / counted.sum())


@AGGREGATIONS.register
class SequenceMeanTokenMean(Config):
    """Every counted completion weighs the same, and its tokens share its weight (GRPO, arXiv 2402.03300, eq. 3).

    Long wrong answers are punished less for each token than short ones.
    """

    kind: Literal["sequence_mean_token_mean"] = "sequence_mean_token_mean"
    """Names this aggregation."""

    def weights(self, lengths: Int[np.ndarray, " R"], counted: Int[np.ndarray, " C"]) -> Float64[np.ndarray, " R"]:
        """See `Aggregation`."""
        return 1 / (len(counted) * lengths)


@AGGREGATIONS.register
class SequenceMeanTokenSum(Config):
    """The mean over counted completions of token sums over a constant (Dr. GRPO, arXiv 2503.20783, section 3)."""

    kind: Literal["sequence_mean_token_sum"] = "sequence_mean_token_sum"
    """Names this aggregation."""
    normaliser: float = Field(gt=0)
    """The constant, in tokens: the same for every step, usually the sampler's `max_tokens`."""

    def weights(self, lengths: Int[np.ndarray, " R"], counted: Int[np.ndarray, " C"]) -> Float64[np.ndarray, " R"]:
        """See `Aggregation`."""
        return np.full(len(lengths), 1 / (len(counted) * self.normaliser))
