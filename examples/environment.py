"""An environment of your own, by TRL's contract `environment_factory`: its public methods are tools.

In YAML: rollout: {environment: "environment:Calculator", tool_syntax: "cooper_lab.arithmetic.calculator:Brackets"}
A chat model needs no `tool_syntax`: its chat template shows the tools and their results.
"""

from random import Random
from typing import Any

from cooper_lab.arithmetic.calculator import computed, shown


class Calculator:
    """A calculator that is busy once in a while. `reset` takes the fields of the problem, and a seed."""

    def reset(self, seed: int, **problem: Any) -> None:
        """Begin a rollout: the same seed and calls give the same answers, so a resumed run is exact."""
        self.random, self.answered = Random(seed), 0

    def calculate(self, expression: str) -> str:
        """Compute the sum, difference, product or quotient of two numbers.

        Args:
            expression: Two numbers with a sign between them, such as `12+7`.
        """
        if self.random.random() < 0.1:
            raise RuntimeError("busy")  # the policy reads it as the result
        self.answered += 1
        return shown(computed(expression))

    def get_reward(self) -> float:
        """The reward `environment`; with `rule: {kind: outside}` and `rollout.solved_at` it is the verdict too."""
        return float(self.answered > 0)


if __name__ == "__main__":
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from tiny_run import train

    from cooper_lab.arithmetic.calculator import ENVIRONMENT
    from cooper_lab.arithmetic.tool_world import policy_with_calls

    with TemporaryDirectory() as folder:
        policy_with_calls(Path(folder) / "policy", updates=80)  # a minute's schooling in how to call
        run = train(
            policy={"model": f"{folder}/policy", "learning_rate": 5e-4},
            rollout={**ENVIRONMENT, "environment": "environment:Calculator", "n": 4},
        )
    counts = {name.partition("/")[2]: value for name, value in run.metrics.items() if name.startswith("environment/")}
    print("own environment:", {name: round(value, 2) for name, value in counts.items()})
    print(next(one["transcript"] for row in run.rollouts for one in row["completions"] if "transcript" in one))
