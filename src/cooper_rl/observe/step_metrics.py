"""Metrics of a step's rollouts."""

import numpy as np

from cooper_rl.rollouts.rollouts import Rollouts


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
