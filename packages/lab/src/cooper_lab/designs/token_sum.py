"""The aggregation of Dr. GRPO."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from cooper_base.config.base import Config
from cooper_rl.engines.losses.policy import AGGREGATIONS

if TYPE_CHECKING:
    from jaxtyping import Int

    from cooper_rl.engines.losses.policy import Lengths, Weights


@AGGREGATIONS.register
class SequenceMeanTokenSum(Config):
    """Token sums divided by a constant, averaged over counted completions (Dr. GRPO, arXiv 2503.20783, section 3)."""

    kind: Literal["sequence_mean_token_sum"] = "sequence_mean_token_sum"
    normaliser: float = Field(gt=0)
    """The constant, in tokens. It is the same for every step, usually the sampler's `max_tokens`."""

    def token_weights(self, lengths: Lengths, counted: Int[np.ndarray, " C"]) -> Weights:
        return np.full(len(lengths), 1 / (len(counted) * self.normaliser))
