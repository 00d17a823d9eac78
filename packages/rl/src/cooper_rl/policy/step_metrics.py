"""Metrics of a step's rollouts and of its advantages."""

from collections.abc import Sequence

import numpy as np

from cooper_base.data.verdict import Verdict
from cooper_rl.records import Ragged, Rollouts


def rollout_metrics(rollouts: Rollouts, step: int) -> dict[str, float]:
    """Metrics of the completions. The entropy is minus the mean log-probability, in nats; the lag counts updates."""
    lengths_B = rollouts.written_lengths
    completions, tokens = len(lengths_B), int(lengths_B.sum())
    completion_of = np.repeat(np.arange(completions), lengths_B)
    logprobs_B = np.bincount(completion_of, weights=rollouts.logprobs[rollouts.written], minlength=completions)
    return {
        "rollout/lag": step - 1 - float(rollouts.versions.mean()),
        "rollout/tokens": float(tokens),
        "rollout/mean_length": tokens / completions,
        "rollout/cut_off_rate": int((~rollouts.stopped).sum()) / completions,
        "rollout/entropy_estimate": -sum(logprobs_B.tolist()) / max(tokens, 1),
    }


def unverified_advantage(advantages: Ragged, verdicts: Sequence[Sequence[Verdict]]) -> dict[str, float]:
    """The share of the sum of |advantage| in groups that the rule judges and in which it accepts no answer.

    Nothing if the sum is 0. A group on which the rule is silent counts in the sum alone.

    Such a group can teach no right answer. What it teaches is noise in the reward, or a hack.
    """
    weights = np.array([sum(map(abs, row)) for row in advantages.rows()])
    unverified = np.array(["correct" not in row and row.count("silent") < len(row) for row in verdicts])
    total = float(weights.sum())
    return {"policy/unverified_advantage": float(weights[unverified].sum()) / total} if total else {}
