"""The reward model's verdict as a reward."""

from collections.abc import Sequence

from cooper_rl.engines.base import RewardModelLearner
from cooper_rl.rewards.base import Scores
from cooper_rl.rewards.model.input import RewardModelInput
from cooper_rl.rollouts.answers import AnswerGroup


class RewardModelReward:
    """sigmoid(logit) of a reference-based reward model, frozen or learning."""

    def __init__(self, learner: RewardModelLearner, encoder: RewardModelInput) -> None:
        self._learner = learner
        self._encoder = encoder

    def score(self, groups: Sequence[AnswerGroup]) -> Scores:
        """Rewards in [0, 1] under the learner's current weights.

        Parts `reward_model` (the reward) and `logit`; metrics `reward_model/mean` and `reward_model/std`, over all
        completions of the step.
        """
        token_ids = [
            self._encoder.encode(group.problem.question, group.problem.answer, completion.text)
            for group in groups
            for completion in group.answers
        ]
        logits = self._learner.score(token_ids).reshape(len(groups), -1)
        rewards = logits.sigmoid()
        metrics = {
            "reward_model/mean": rewards.mean().item(),
            "reward_model/std": rewards.std(correction=0).item(),
        }
        return Scores(rewards, {"reward_model": rewards, "logit": logits}, metrics)
