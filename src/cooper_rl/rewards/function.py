"""The reward that a function of the user's own pays."""

from collections.abc import Sequence

import torch

from cooper_rl.rewards.base import Scores
from cooper_rl.rewards.reward_function import RewardFunction
from cooper_rl.rollouts.answers import AnswerGroup


class FunctionReward:
    """A function of the user's, see `RewardFunction`, times `weight`."""

    def __init__(self, function: str, weight: float = 1.0, batched: bool = False) -> None:
        self._function = RewardFunction(function, batched)
        self._weight = weight

    def score(self, groups: Sequence[AnswerGroup]) -> Scores:
        """Weighted values as rewards; part and metric are named after the function, and unweighted.

        Raises InputError naming function and problem where the function returns no finite number for a completion.
        """
        asked = [(group.problem, completion) for group in groups for completion in group.answers]
        flat = self._function.values([problem for problem, _ in asked], [completion for _, completion in asked])
        values = torch.tensor(flat).reshape(len(groups), -1)
        name = self._function.path.rpartition(":")[2]
        return Scores(self._weight * values, {name: values}, {f"function/{name}": values.mean().item()})
