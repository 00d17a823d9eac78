"""Metrics of a step's rollouts, and of what the policy learns from them."""

from collections.abc import Sequence

import numpy as np

from cooper_rl.rewards.rule.verdict import Verdict
from cooper_rl.rollouts import Ragged, Rollouts


def rollout_metrics(rollouts: Rollouts, step: int) -> dict[str, float]:
    """Tokens in all, tokens per completion, the share of completions cut off, and entropy in nats per token.

    The entropy is estimated by the mean negative log-probability of the sampled tokens. `rollout/lag` is the mean
    number of policy updates between the weights that drew a completion and those of this step.
    """
    lengths_B = rollouts.token_ids.lengths
    completions, tokens = len(lengths_B), int(lengths_B.sum())
    completion_of = np.repeat(np.arange(completions), lengths_B)
    logprobs_B = np.bincount(completion_of, weights=rollouts.logprobs, minlength=completions)
    return {
        "rollout/lag": step - 1 - float(rollouts.versions.mean()),
        "rollout/tokens": float(tokens),
        "rollout/mean_length": tokens / completions,
        "rollout/cut_off_rate": int((~rollouts.stopped).sum()) / completions,
        "rollout/entropy_estimate": -sum(logprobs_B.tolist()) / max(tokens, 1),
    }


def unverified_advantage(advantages: Ragged, verdicts: Sequence[Sequence[Verdict]]) -> dict[str, float]:
    """The share of the sum of |advantage| in groups in which the rule accepts no answer; nothing if the sum is 0.

    Such a group can teach no right answer. What it teaches is noise in the reward, or a hack. An estimator that divides
    by a group's spread gives it the weight of any other group.
    """
    weights = np.array([sum(map(abs, row)) for row in advantages.rows()])
    unverified = np.array(["correct" not in row for row in verdicts])
    total = float(weights.sum())
    return {"policy/unverified_advantage": float(weights[unverified].sum()) / total} if total else {}
