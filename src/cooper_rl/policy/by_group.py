"""Advantages and weights of ragged groups, over the functions for groups of one size."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cooper_rl.policy import advantages as of_equal_groups
from cooper_rl.policy import aggregation
from cooper_rl.rollouts.ragged import Ragged


def usable_groups(rewards: Ragged, min_spread: float) -> Bool[Tensor, " P"]:
    """See `advantages.usable_groups`."""
    if rewards.uniform:
        return of_equal_groups.usable_groups(rewards.padded(0.0), min_spread)
    return torch.cat([of_equal_groups.usable_groups(group[None], min_spread) for group in rewards.groups()])


def advantages(rewards: Ragged, config: of_equal_groups.AdvantageConfig, usable: Bool[Tensor, " P"]) -> Ragged:
    """See `advantages.advantages`. Raises ValueError for ragged groups of an estimator that looks across groups."""
    if rewards.uniform:
        return rewards.unpadded(of_equal_groups.advantages(rewards.padded(0.0), config, usable))
    if config.kind == "reinforce_pp_baseline":
        raise ValueError("reinforce_pp_baseline takes groups of one size")
    found = [
        of_equal_groups.advantages(group[None], config, use[None])[0]
        for group, use in zip(rewards.groups(), usable, strict=True)
    ]
    return rewards.like(torch.cat(found))


def token_weights(
    lengths: Int[np.ndarray, " B"],
    config: aggregation.AggregationConfig,
    *,
    counted: Bool[np.ndarray, " B"],
    kept: Bool[np.ndarray, " B"],
) -> Float[np.ndarray, " B"]:
    """The weight of each token of row i; see `aggregation.token_weights`."""
    rows = aggregation.token_weights(lengths.tolist(), config, counted=counted.tolist(), kept=kept.tolist())
    return np.array([row[0] if row else 0.0 for row in rows], dtype=np.float64)
