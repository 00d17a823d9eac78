"""Summary statistics of a step's rewards, before and after shaping."""

import math

from cooper_rl.rewards.base import Scores
from cooper_rl.rollouts import Ragged


def reward_metrics(scores: Scores) -> dict[str, float]:
    """`reward/mean`, `reward/std` and `reward/group_spread` before shaping; with shaping, `reward/shaped_*` after it.

    `reward/non_finite` is the share of completions whose reward before shaping is not finite. The other metrics cover
    the rest and are NaN if nothing is left. The spread is the largest minus the smallest reward of a group.
    """
    before = scores.parts.get("unshaped")
    if before is None:
        return _summary(scores.rewards, "reward/")
    after = _summary(scores.rewards, "reward/shaped_")
    return _summary(before, "reward/") | after


def _summary(rewards: Ragged, prefix: str) -> dict[str, float]:
    finite = rewards.flat.isfinite()
    values = rewards.flat[finite]
    blocks = [rewards.padded(0.0)] if rewards.uniform else [group[None] for group in rewards.groups() if len(group)]
    spreads = [whole.amax(1) - whole.amin(1) for block in blocks if len(whole := block[block.isfinite().all(dim=1)])]
    spread = spreads[0].new_tensor([value for one in spreads for value in one.tolist()]) if spreads else values[:0]
    return {
        f"{prefix}mean": values.mean().item(),
        f"{prefix}std": values.std(unbiased=False).item() if len(values) else math.nan,
        f"{prefix}group_spread": spread.mean().item(),
        f"{prefix}non_finite": 1 - finite.float().mean().item(),
    }
