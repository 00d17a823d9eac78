"""What scoring answers and updating the reward model return."""

from dataclasses import dataclass, field

from cooper_rl.cooptimization.pairs import Pair
from cooper_rl.engines.base import Metrics
from cooper_rl.rewards.base import Scores
from cooper_rl.rewards.context import StepContext
from cooper_rl.rules.rule import Verdict


@dataclass(frozen=True)
class Scored:
    """The result of `CooperReward.score`: one list per group, one entry per answer.

    `rewards` are the final rewards, after shaping. `logits` come from the reward model that learns, else from the first
    one used in a reward; they are None if there is no reward model. `version` is the version of the model that scored.
    """

    rewards: list[list[float]]
    logits: list[list[float]] | None
    verdicts: list[list[Verdict]]
    version: int
    metrics: Metrics
    scores: Scores = field(repr=False, compare=False)
    """The same rewards with all their parts."""
    context: StepContext = field(repr=False, compare=False)
    """Verdicts, scores and gold labels of the answers."""


@dataclass(frozen=True)
class Updated:
    """The result of `CooperReward.update`: the step's pairs, with their logits before and after the update."""

    step: int
    version: int
    pairs: list[Pair]
    metrics: Metrics
