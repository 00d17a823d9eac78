"""A kind of reward from outside the package."""

from cooper_rl import Scores
from cooper_rl.reward.base import RewardConfig


class Longer(RewardConfig):
    than: int = 0

    def build(self):
        return self

    def score(self, context):
        lengths = [float(len(answer.text) > self.than) for group in context.groups for answer in group.answers]
        return Scores(context.ragged(lengths))
