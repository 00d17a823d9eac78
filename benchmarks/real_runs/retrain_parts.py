"""What `retrain` is configured with: its data source, and the rewards of the plan as its custom functions."""

import os
from pathlib import Path
from typing import Any

from benchmarks.real_runs.plan import REWARDS
from benchmarks.real_runs.rewards import PlannedReward
from benchmarks.real_runs.world import training_problems

from cooper_rl import Problem

ENVIRONMENTS = "REAL_RUNS_ENVIRONMENTS"
"""Environment variable: the folder in which the rewards' packages are installed."""


class Problems:
    """The training problems, in the order of TRL's data set."""

    def __init__(self, config: Any) -> None:
        pass

    def load(self) -> list[Any]:
        from retrain.data import Example  # pyright: ignore[reportMissingImports]

        return [Example(problem.question, problem.answer) for problem in training_problems()]


def __getattr__(name: str) -> Any:
    """`module:function` of a reward of the plan: (response, reference) -> float."""
    reward = next((reward for reward in REWARDS if reward.name == name), None)
    if reward is None:
        raise AttributeError(name)
    planned = PlannedReward(reward, Path(os.environ[ENVIRONMENTS]))
    return lambda response, reference: planned.score(Problem("", "", reference), response)
