"""A run of Cooper's own loop on the problems of the real runs."""

from pathlib import Path
from typing import Any

from benchmarks.real_runs.plan import GROUP, PROBLEMS
from benchmarks.real_runs.world import MAX_TOKENS, write_problems

from cooper_lab.arithmetic.world import run_settings
from cooper_rl import CooperTrainer, build_config, merge


def train_in(folder: Path, start: Path, seed: int, chosen: dict[str, Any]) -> None:
    """Train the start policy in this folder with the chosen settings. The problems are written beside it."""
    problems = folder.parent / "problems.jsonl"
    if not problems.exists():
        problems.parent.mkdir(parents=True, exist_ok=True)
        write_problems(problems)
    shared = {
        "problems_per_step": PROBLEMS,
        "policy": {"model": str(start)},
        "problems": {
            "source": str(problems),
            "gold": "benchmarks.real_runs.world:right",
            "prompt": {"template": "{question}\n", "chat": False},
        },
        "test_problems": None,
        "evaluation": {"every": 0},
        "rollout": {"n": GROUP, "max_tokens": MAX_TOKENS},
    }
    settings = run_settings(folder.name, folder.parent, seed, merge(shared, chosen))
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        trainer.fit()
