"""A step for trainers in this process that score its answers in several calls."""

from collections.abc import Sequence
from pathlib import Path

from cooper_base.data.answer import AnswerGroup
from cooper_rl.reward.cooper_reward import CooperReward
from cooper_rl.reward.scored import Scored, Updated


class StepKeeper:
    """A `CooperReward` with the verbs of the service's client: it keeps what was scored until the step is updated."""

    def __init__(self, reward: CooperReward) -> None:
        self.reward = reward
        self._calls: list[Scored] = []

    def score(self, groups: Sequence[AnswerGroup], *, step: int | None = None, train: bool = True) -> Scored:
        """See `CooperReward.score`. The calls of a step add up."""
        if not train:
            return self.reward.score(groups, train=False)
        self._calls.append(self.reward.score(groups, step=step, earlier=self._calls))
        return self._calls[-1]

    def update(self, step: int) -> Updated:
        calls, self._calls = self._calls, []
        return self.reward.update(calls, step=step)

    def save(self, folder: str | Path) -> None:
        self.reward.save(folder)

    def load(self, folder: str | Path) -> None:
        """Restore what `save` wrote. Answers of a step under way are dropped."""
        self._calls = []
        self.reward.load(folder)
