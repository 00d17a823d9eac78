"""Numbers that sum up a step's rollouts and verdicts."""

import math
from collections.abc import Sequence

from torch import Tensor

from cooper_rl.engines.sampling import Group


def rollout_metrics(groups: Sequence[Group], rewards_PN: Tensor) -> dict[str, float]:
    """What was sampled and how it was rewarded.

    `reward/non_finite` is the share of completions whose reward is not finite; the other `reward/` metrics are over
    the rest, and NaN where nothing is left.
    """
    completions = [completion for group in groups for completion in group.completions]
    tokens = sum(len(completion.token_ids) for completion in completions)
    finite_PN = rewards_PN.isfinite()
    rewards, whole_groups = rewards_PN[finite_PN], rewards_PN[finite_PN.all(dim=1)]
    return {
        "reward/mean": rewards.mean().item(),
        "reward/std": rewards.std(unbiased=False).item() if len(rewards) else math.nan,
        "reward/group_spread": (whole_groups.amax(1) - whole_groups.amin(1)).mean().item(),
        "reward/non_finite": 1 - finite_PN.float().mean().item(),
        "rollout/tokens": float(tokens),
        "rollout/mean_length": tokens / len(completions),
        "rollout/cut_off_rate": sum(c.stop_reason == "length" for c in completions) / len(completions),
        "rollout/entropy_estimate": -sum(sum(c.logprobs) for c in completions) / max(tokens, 1),
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
