"""The estimator MaxRL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cooper_rl import AdvantageConfig

if TYPE_CHECKING:
    from cooper_rl import Completions, Ragged


class MaxRL(AdvantageConfig):
    """(r - mean) / mean inside each group. For rewards >= 0 this approaches the maximum-likelihood gradient as N grows.

    Tajwar et al. 2026 (arXiv 2602.02710): an average over the successes, with a zero-mean control variate.
    A group whose mean is not positive has no success to imitate and gets 0. For rewards >= 0 the result lies in
    [-1, N - 1]. Penalties can make rewards negative and the mean almost zero, so the result is clamped to +-(N - 1).
    """

    def advantages(self, rewards: Ragged, completions: Completions | None = None) -> Ragged:
        mean, n = rewards.expand(rewards.mean()), rewards.expand(rewards.counts())
        succeeded = mean > 0
        ratio = (rewards.flat - mean) / mean.where(succeeded, 1.0)
        return rewards.like(ratio.clamp(1 - n, n - 1).where(succeeded, 0.0))
