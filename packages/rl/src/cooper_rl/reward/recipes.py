"""What each `kind` of run is: the settings in which it differs from the fields' defaults.

A run's settings are the fields' defaults, then the recipe of its kind, then the user's own, merged field by field. The
recipe always applies whole: a user who lists `rewards` replaces what the recipe pays, and nothing else of it. A part
(settings with a `kind` of their own) of another kind replaces the recipe's part; one of the same kind, or without
`kind`, keeps the recipe's other fields. A record takes those sections of a recipe that it has: another trainer, which
calls the reward alone, has no `algorithm`.
"""

from typing import Any, Literal

Kind = Literal["cooper", "cooper_model", "cooper_light", "paper", "rule", "static", "function", "gad"]

RECIPES: dict[str, dict[str, Any]] = {
    # Rule and co-trained reward model, weighted by their agreement.
    "cooper": {
        "rewards": [{"kind": "earned"}],
        "reward_model": {"learns": True},
        "algorithm": {
            # Without the floor, GRPO would rescale a distrusted model's small rewards to full size.
            "advantages": {"kind": "grpo", "std_floor": 0.2},
        },
        "cooptimization": {
            # Where the rule is silent, only near references show a model that takes 28 for 28,000.
            "pairs": [{"kind": "assistant"}, {"kind": "on_policy"}, {"kind": "near_reference"}],
            # Short: while the reward model learns, the rule pays.
            "skip_gradient_share": 0.2,
        },
    },
    # The co-trained reward model alone pays. A weak one has to learn faster than it is exploited.
    "cooper_model": {
        "rewards": [{"kind": "reward_model"}],
        "reward_model": {"learns": True},
        "cooptimization": {"epochs": 2},
    },
    # As `cooper_model`, with less cooptimization, always after the policy's update: for an assistant paid by the
    # reply, or a reward model much larger than the policy. Holes take longer to close.
    "cooper_light": {
        "rewards": [{"kind": "reward_model"}],
        "reward_model": {"learns": True},
        "cooptimization": {"pairs_per_problem": 1, "before_policy": None},
    },
    # Cooper as published (arXiv 2508.05613, section 3).
    "paper": {
        "rewards": [{"kind": "reward_model"}],
        "reward_model": {"learns": True},
        "algorithm": {
            "min_spread": 0.0,  # every group is divided by its standard deviation, however small
            "kl": {"kind": "k3", "clamp": 10.0},  # as in verl, on which the paper's code ran
        },
        "cooptimization": {
            "pairs": [{"kind": "assistant"}],
            "positives": ["rollout"],
            "pairs_per_problem": 1,
            "loss": {"kind": "pairwise", "anchor": 0.0},
            "before_policy": None,
            "replay": {"pairs_per_step": 0},
        },
    },
    # The rule pays; no reward model.
    "rule": {"rewards": [{"kind": "rule"}]},
    # A reward model that does not learn pays.
    "static": {"rewards": [{"kind": "reward_model"}]},
    # The user's own rewards alone pay; they have to be listed. Problems need no reference answer.
    "function": {},
    # Generative Adversarial Distillation (arXiv 2511.10643): the reward model tells a teacher's answers, which are the
    # problems' solutions, from the policy's, and its score pays. Problems need no reference answer.
    "gad": {
        "rewards": [{"kind": "reward_model", "pays": "logit"}],
        "reward_model": {"learns": True, "input": "chat"},
        "rule": {"kind": "silent"},
        "cooptimization": {
            "pairs": [{"kind": "teacher"}],
            "positives": ["reference_solution"],
            "pairs_per_problem": 64,  # all answers of a group
            "loss": {"kind": "pairwise", "anchor": 0.0},
            "before_policy": None,
            # The policy's answers of the past are no longer wrong once the policy has caught up with the teacher.
            "replay": {"pairs_per_step": 0},
        },
    },
}


def set_by_recipes(key: str, kind: str | None) -> dict[str, Any]:
    """The values that kinds of run give to a setting, by its full key and, inside a part, the part's kind."""
    *sections, name = key.split(".")
    values = {}
    for run, recipe in RECIPES.items():
        part = recipe
        for section in sections:
            part = part.get(section, {})
        if name in part and name != "kind" and kind in (None, part.get("kind", kind)):
            values[run] = part[name]
    return values


def trains(kind: str) -> bool:
    """Whether runs of this kind train a reward model."""
    return RECIPES[kind].get("reward_model", {}).get("learns", False)
