"""Three named sets of defaults for stage 2. A run's own settings override them."""

from typing import Any

PAPER: dict[str, Any] = {
    "negatives": ["assistant"],
    "positives": ["rollout"],
    "pairs_per_problem": 1,
    "anchor": 0.0,
    "before_policy": None,
    "replay": {"capacity": 0, "pairs_per_step": 0},
    "epochs": 1,
}
"""Cooper as published (arXiv 2508.05613, section 3): the assistant rewrites positives from the rollouts, and the loss
is pairwise only."""

COOPER: dict[str, Any] = {
    "negatives": ["assistant", "on_policy"],
    "positives": ["rollout", "reference_solution"],
    "pairs_per_problem": 4,
    "on_policy": {"order": "hardest", "trust_unparsed": False},
    "anchor": 0.5,
    "before_policy": 0.1,
    "replay": {"capacity": 4096, "pairs_per_step": 32},
    "epochs": 2,
}
"""Our version: the policy's own wrong completions also become negatives, scores stay anchored, and past pairs are
replayed. Through its reference solution, even a problem without a correct completion teaches the reward model. It
learns faster than it is exploited: from several pairs a problem, in two updates a step, and before the policy's update
where the rule contradicts it. docs/what-stops-hacking.md has what that gains and costs."""

LIGHT: dict[str, Any] = {**COOPER, "pairs_per_problem": 1, "before_policy": None, "epochs": 1}
"""`COOPER` with one pair a problem from each source and one update a step, after the policy's: for an assistant that is
paid by the reply, or a reward model much larger than the policy."""
