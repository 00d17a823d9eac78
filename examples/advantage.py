"""An advantage of your own: it is -1, 0 or 1, whatever the size of the reward.

In YAML: algorithm: {advantages: {kind: "advantage:SignOfReward", margin: 0.1}}
"""

from pydantic import Field

from cooper_rl import AdvantageConfig, Completions, Ragged


class SignOfReward(AdvantageConfig):
    """The sign of a reward's distance from its group's mean, where it is larger than a margin."""

    margin: float = Field(default=0.0, ge=0)
    """A reward this close to the mean, or closer, counts as average."""

    def advantages(self, rewards: Ragged, completions: Completions | None = None) -> Ragged:
        """The advantages of the step's usable groups, which may differ in size."""
        distance = rewards.flat - rewards.expand(rewards.mean())
        return rewards.like(distance.sign().where(distance.abs() > self.margin, 0.0))


if __name__ == "__main__":
    from tiny_run import train

    run = train(algorithm={"advantages": SignOfReward(margin=0.1)})
    used = {completion["advantage"] for problem in run.rollouts for completion in problem["completions"]}
    assert used <= {-1.0, 0.0, 1.0}
    print("own advantage: values", sorted(used))
