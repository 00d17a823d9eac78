"""Two named sets of stage-2 defaults; a run's own settings go on top."""

from typing import Any

PAPER: dict[str, Any] = {
    "negatives": ["assistant"],
    "positives": ["rollout"],
    "pairs_per_problem": 1,
    "anchor": 0.0,
    "replay": {"capacity": 0, "pairs_per_step": 0},
    "epochs": 1,
}
"""Cooper as published (arXiv 2508.05613, section 3): assistant negatives of rollout positives, pairwise loss alone."""

COOPER: dict[str, Any] = {
    "negatives": ["assistant", "on_policy"],
    "positives": ["rollout", "reference_solution"],
    "pairs_per_problem": 1,
    "on_policy": {"order": "hardest", "trust_unparsed": False},
    "anchor": 0.5,
    "replay": {"capacity": 4096, "pairs_per_step": 32},
    "epochs": 1,
}
"""Ours: the policy's own wrong completions become negatives, scores stay anchored, past pairs are replayed, and a
problem that nobody solves still teaches the reward model, through its reference solution."""
