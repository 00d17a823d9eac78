"""A reward of your own, as a part with settings: it reuses the verdicts that the step has computed.

In YAML: rewards: [{kind: rule}, {kind: "reward:RareSuccess", strength: 0.5, weight: 1.0}]
"""

from cooper_rl import RewardConfig, Scores, StepContext


class RareSuccess(RewardConfig):
    """Pays more for a right answer if few answers of its group are right. It has no state, so it is its own reward."""

    strength: float = 0.5
    """The reward of a right answer that is the only one in a very large group."""

    def score(self, context: StepContext) -> Scores:
        """A reward for every answer. The rule's verdicts are computed once a step, however many rewards read them."""
        correct = context.correct
        bonus = correct.like(self.strength * correct.flat * (1 - correct.expand(correct.mean())))
        return Scores(bonus, {"rare_success": bonus}, {"rare_success/mean": bonus.flat.mean().item()})


if __name__ == "__main__":
    from tiny_run import train

    run = train(rewards=[{"kind": "rule"}, RareSuccess(strength=0.5)])
    print("own reward: rare_success/mean", run.metrics["rare_success/mean"])
