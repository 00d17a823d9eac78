"""Means over tokens, over completions, and over a constant length."""

from typing import Literal

import numpy as np
from jaxtyping import Float64, Int
from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.policy.aggregation import AGGREGATIONS


@AGGREGATIONS.register
class TokenMean(Config):
    """Every counted token of the step has the same weight (DAPO, arXiv 2503.14476, eq. 8; used by Cooper)."""

    kind: Literal["token_mean"] = "token_mean"
    """Names this aggregation."""

    def weights(self, lengths: Int[np.ndarray, " R"], counted: Int[np.ndarray, " C"]) -> Float64[np.ndarray, " R"]:
        """See `Aggregation`."""
        return np.full(len(lengths), 1 / counted.sum())


@AGGREGATIONS.register
class SequenceMeanTokenMean(Config):
    """Every counted completion has the same weight, divided among its tokens (GRPO, arXiv 2402.03300, eq. 3).

    Each token of a long wrong answer is punished less than each token of a short one.
    """

    kind: Literal["sequence_mean_token_mean"] = "sequence_mean_token_mean"
    """Names this aggregation."""

    def weights(self, lengths: Int[np.ndarray, " R"], counted: Int[np.ndarray, " C"]) -> Float64[np.ndarray, " R"]:
        """See `Aggregation`."""
        return 1 / (len(counted) * lengths)


@AGGREGATIONS.register
class SequenceMeanTokenSum(Config):
    """Token sums divided by a constant, averaged over counted completions (Dr. GRPO, arXiv 2503.20783, section 3)."""

    kind: Literal["sequence_mean_token_sum"] = "sequence_mean_token_sum"
    """Names this aggregation."""
    normaliser: float = Field(gt=0)
    """The constant, in tokens. It is the same for every step, usually the sampler's `max_tokens`."""

    def weights(self, lengths: Int[np.ndarray, " R"], counted: Int[np.ndarray, " C"]) -> Float64[np.ndarray, " R"]:
        """See `Aggregation`."""
        return np.full(len(lengths), 1 / (len(counted) * self.normaliser))
