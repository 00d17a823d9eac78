"""Numbers that sum up a step's rollouts and verdicts."""

import math
from collections.abc import Sequence

import numpy as np
import torch

from cooper_rl.rollouts.ragged import Ragged
from cooper_rl.rollouts.rollouts import Rollouts


def rollout_metrics(rollouts: Rollouts, rewards: Ragged) -> dict[str, float]:
    """What was sampled and how it was rewarded.

    `reward/non_finite` is the share of completions whose reward is not finite; the other `reward/` metrics are over
    the rest, and NaN where nothing is left.
    """
    lengths_B = rollouts.token_ids.lengths
    completions, tokens = len(lengths_B), int(lengths_B.sum())
    finite_B = rewards.flat.isfinite()
    finite = rewards.flat[finite_B]
    spreads = [group.amax() - group.amin() for group in rewards.groups() if bool(group.isfinite().all())]
    completion_of = np.repeat(np.arange(completions), lengths_B)
    logprobs_B = np.bincount(completion_of, weights=rollouts.logprobs, minlength=completions)
    return {
        "reward/mean": finite.mean().item(),
        "reward/std": finite.std(unbiased=False).item() if len(finite) else math.nan,
        "reward/group_spread": torch.stack(spreads).mean().item() if spreads else math.nan,
        "reward/non_finite": 1 - finite_B.float().mean().item(),
        "rollout/tokens": float(tokens),
        "rollout/mean_length": tokens / completions,
        "rollout/cut_off_rate": int((~rollouts.stopped).sum()) / completions,
        "rollout/entropy_estimate": -sum(logprobs_B.tolist()) / max(tokens, 1),
    }


def metrics_by_rule(rules: Sequence[str], verdicts: Sequence[Sequence[str]]) -> dict[str, float]:
    """`rule/<name>_accuracy`, `_unparsed` and `_share` of each rule, where a step's groups have more than one.

    `rules[p]` is the rule of group p; a share is of all completions.
    """
    names = sorted(set(rules))
    if len(names) < 2:
        return {}
    total, metrics = sum(map(len, verdicts)), {}
    for name in names:
        flat = [verdict for rule, row in zip(rules, verdicts, strict=True) if rule == name for verdict in row]
        metrics[f"rule/{name}_accuracy"] = flat.count("correct") / len(flat)
        metrics[f"rule/{name}_unparsed"] = flat.count("unparsed") / len(flat)
        metrics[f"rule/{name}_share"] = len(flat) / total
    return metrics


def verdict_metrics(verdicts: Sequence[Sequence[str]]) -> dict[str, float]:
    """Shares of the rule verifier's four verdicts."""
    flat = [verdict for row in verdicts for verdict in row]
    names = {"correct": "rule/accuracy", "wrong": "rule/wrong", "unparsed": "rule/unparsed", "timeout": "rule/timeout"}
    return {name: flat.count(verdict) / len(flat) for verdict, name in names.items()}
