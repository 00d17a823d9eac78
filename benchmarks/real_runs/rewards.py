"""A reward of the plan as a function of (problem, completion), each part called as its package ships it.

TRL's are called in this process, with characters as tokens. Those of other packages are called in a process of their
own by `benchmarks/public_rewards`, which installs them.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.public_rewards.public_reward import SECONDS, Child
from benchmarks.real_runs.plan import Reward
from benchmarks.real_runs.world import MAX_TOKENS

from cooper_rl import Problem
from cooper_verify.grader import Asked, Grader, Opinion

Score = Callable[[Problem, str], float]


def part(name: str, environments: Path) -> Score:
    """One function of a package."""
    package, _, function = name.partition(":")
    if package == "trl":
        return _of_trl(function)
    child = Child(name, environments / package)

    def score(problem: Problem, text: str) -> float:
        (reply,) = child.replies([Asked(problem, text)], SECONDS)
        if reply["score"] is None:
            raise RuntimeError(f"{name}: {reply} for {text!r}")
        return reply["score"]

    return score


@cache
def trl_function(name: str) -> Any:
    """A reward function of TRL, as its trainer takes it."""
    from trl import rewards

    made = getattr(rewards, name)
    return made(max_len=MAX_TOKENS) if name == "get_cosine_scaled_reward" else made


def _of_trl(name: str) -> Score:
    function = trl_function(name)

    def score(problem: Problem, text: str) -> float:
        completions, ids = [[{"role": "assistant", "content": text}]], [list(text)]
        return function(completions=completions, solution=[problem.answer], completion_ids=ids)[0]

    return score


class PlannedReward(Grader):
    """A reward of the plan, as `cooper attack` takes it: on a scale that nobody knows."""

    reads_reference = False
    gives_verdicts = False

    def __init__(self, reward: Reward, environments: Path) -> None:
        self.name = reward.name
        self.parts = [part(name, environments) for name in reward.parts]

    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        return [Opinion("silent", self.score(problem, text)) for problem, text in answers]

    def score(self, problem: Problem, text: str) -> float:
        return sum(score(problem, text) for score in self.parts)
