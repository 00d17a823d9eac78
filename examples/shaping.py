"""A shaping of your own: a transform of the finished rewards.

In YAML: shaping: [{kind: "shaping:Squash", scale: 2.0}]
"""

from cooper_rl import Ragged, ShapingConfig, StepContext


class Squash(ShapingConfig):
    """tanh(scale * reward): no reward is larger than 1. It has no state, so the settings record is the shaping."""

    scale: float = 2.0
    """The reward is multiplied by this before tanh."""

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """The rewards that the policy learns from."""
        return rewards.like((self.scale * rewards.flat).tanh())


if __name__ == "__main__":
    from tiny_run import train

    run = train(shaping=[Squash()])
    rewards = {round(one["reward"], 3) for problem in run.rollouts for one in problem["completions"]}
    print("own shaping: reward/mean", run.metrics["reward/mean"], "rewards", sorted(rewards))
