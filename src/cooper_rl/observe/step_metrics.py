"""Numbers that sum up a step's rollouts."""

from collections.abc import Sequence

from cooper_rl.engines.sampling import Group


def rollout_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """What was sampled."""
    completions = [completion for group in groups for completion in group.completions]
    tokens = sum(len(completion.token_ids) for completion in completions)
    return {
        "rollout/tokens": float(tokens),
        "rollout/mean_length": tokens / len(completions),
        "rollout/cut_off_rate": sum(c.stop_reason == "length" for c in completions) / len(completions),
        "rollout/entropy_estimate": -sum(sum(c.logprobs) for c in completions) / max(tokens, 1),
    }
