"""An arena run of two steps, as small as one can be."""

TINY = {
    "steps": 2,
    "problems_per_step": 2,
    "rollout": {"n": 2, "max_tokens": 8},
    "test_problems": {"limit": 4},
    "evaluation": {"every": 1},
    "checkpoint": {"every": 1},
}
