"""Constraints on mean rewards, whose weights are learned by dual ascent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from cooper_lab.designs.gate import InnerReward
from cooper_rl import Config, InputError, ShapingConfig
from cooper_rl.reward.base import REWARDS
from cooper_rl.reward.kinds.plain import build_sum

if TYPE_CHECKING:
    from cooper_rl import Ragged, StepContext


class Constraint(Config):
    """A level that the mean of one reward should reach."""

    reward: InnerReward
    """The constrained reward with its settings, or just its kind, such as `rule`."""
    at: float
    """The level, in units of the reward."""
    kind: Literal["bound", "equal"] = "bound"
    """`bound` pays for the reward until its mean has reached the level: its weight sigmoid(lambda) lies between 0 and
    1. `equal` holds the mean at the level: its weight tanh(lambda) may be negative, and the policy is then trained
    against the reward."""

    def weight(self, multiplier: float) -> float:
        """The weight for a Lagrange multiplier."""
        return math.tanh(multiplier) if self.kind == "equal" else 1 / (1 + math.exp(-multiplier))

    def after(self, multiplier: float, excess: float, learning_rate: float) -> float:
        """The multiplier after a gradient step on weight(multiplier) * excess, where excess is the mean minus `at`."""
        weight = self.weight(multiplier)
        slope = 1 - weight**2 if self.kind == "equal" else weight * (1 - weight)
        return multiplier - learning_rate * slope * excess


class Constraints(ShapingConfig):
    """(K - sum of weights) * reward + sum of weight * constrained reward, for K constraints.

    Constrained RLHF (Moskovitz et al. 2023, arXiv 2310.04373; mu-PPO with `equal` and xi-PPO with `bound`, as in the
    authors' code, without its momentum, gradient clipping and random start). As there, each reward is standardised
    first, here inside its group, so the result is in standard deviations. After each step, a constrained reward whose
    mean is above its level loses weight, and one below it gains. The reward before this shaping takes up the rest of
    the weight, so it must be another one than the constrained.
    """

    metric_names: ClassVar[tuple[str, ...]] = ("constraints/<number>_mean", "constraints/<number>_weight")
    compares_answers: ClassVar[bool] = True
    constraints: tuple[Constraint, ...] = Field(min_length=1)
    """The constraints."""
    learning_rate: float = Field(default=0.1, gt=0)
    """Step size of the multipliers, which start at 0. The paper's scripts use 0.1; its code's default is 0.01."""
    min_spread: float = Field(default=0.01, ge=0)
    """A group in which a reward differs by no more than this has 0 for that reward, or standardising would enlarge its
    noise. In units of that reward."""

    @property
    def needs_reference(self) -> bool:
        """Whether a constrained reward needs one."""
        return any(getattr(constraint.reward, "needs_reference", True) for constraint in self.constraints)

    def check_place(self, rewards: Sequence[Any], before: Sequence[Any]) -> None:
        """Raises ValueError if a constraint is on the only reward."""
        for constraint in self.constraints:
            if not before and len(rewards) == 1 and _settings(rewards[0]) == _settings(constraint.reward):
                raise ValueError(
                    f"shaping: the constraint at {constraint.at} is on the only reward, "
                    f"{REWARDS.kind_of(constraint.reward)}, so nothing is left to pay once it loses its weight; add "
                    "another reward to rewards, or constrain another one"
                )

    def check(self) -> None:
        for constraint in self.constraints:
            constraint.reward.check()

    def build(self) -> ConstraintsShaping:
        return ConstraintsShaping(self)


class ConstraintsShaping:
    """Mixes rewards by weights that follow the constraints; see `Constraints`."""

    def __init__(self, config: Constraints) -> None:
        self._config = config
        self._rewards = [build_sum([constraint.reward]) for constraint in config.constraints]
        self.multipliers = [0.0] * len(config.constraints)
        """The Lagrange multiplier of each constraint."""

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """The mixture, in float64. A group in which any reward is infinite is not finite. Without an opinion of the
        reward there is none; where a constrained reward has none, it counts as the mean of its group."""
        weights = self._weights()
        mixed = (len(weights) - math.fsum(weights)) * self._standardised(rewards).flat
        for weight, reward in zip(weights, self._rewards, strict=True):
            constrained = context.scores(reward).rewards
            mixed = mixed + weight * self._standardised(constrained).flat.masked_fill(constrained.flat.isnan(), 0.0)
        return rewards.like(mixed)

    def metrics(self, context: StepContext) -> dict[str, float]:
        """For constraint k, counted from 1: `constraints/k_weight`, and `constraints/k_mean` of its reward."""
        measured = {}
        for k, (weight, reward) in enumerate(zip(self._weights(), self._rewards, strict=True), 1):
            measured[f"constraints/{k}_weight"] = weight
            if len(opinions := context.scores(reward).rewards.opinions().flat):
                measured[f"constraints/{k}_mean"] = opinions.double().mean().item()
        return measured

    def commit(self, contexts: Sequence[StepContext]) -> None:
        """Move every multiplier by one step, given the mean over all finite rewards of the step."""
        for k, (constraint, reward) in enumerate(zip(self._config.constraints, self._rewards, strict=True)):
            values = [value for context in contexts for value in context.scores(reward).rewards.flat.tolist()]
            finite = [value for value in values if math.isfinite(value)]
            if finite:  # fsum: the same sum in any order
                excess = math.fsum(finite) / len(finite) - constraint.at
                self.multipliers[k] = constraint.after(self.multipliers[k], excess, self._config.learning_rate)
            reward.commit(contexts)

    def state(self) -> dict[str, Any]:
        """The multipliers and the states of the constrained rewards."""
        return {"multipliers": list(self.multipliers), "rewards": [reward.state() for reward in self._rewards]}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned. Raises InputError if it is of another number of constraints."""
        if len(state["multipliers"]) != len(self.multipliers):
            raise InputError(
                f"shaping: the checkpoint to resume from has {len(state['multipliers'])} constraints, this run has "
                f"{len(self.multipliers)}; resume with the same constraints, or start a new run under another name"
            )
        self.multipliers = list(state["multipliers"])
        for reward, of_reward in zip(self._rewards, state["rewards"], strict=True):
            reward.restore(of_reward)

    def close(self) -> None:
        for reward in self._rewards:
            reward.close()

    def _weights(self) -> list[float]:
        pairs = zip(self._config.constraints, self.multipliers, strict=True)
        return [constraint.weight(multiplier) for constraint, multiplier in pairs]

    def _standardised(self, rewards: Ragged) -> Ragged:
        """(r - mean) / std inside each group, with N - 1, over the answers on which there is an opinion; 0 in groups
        without spread, NaN in those not finite."""
        result = rewards.like(rewards.flat.double())
        opinions = result.opinions()
        flat = opinions.expand(opinions.amax() - opinions.amin()) <= self._config.min_spread
        centred = opinions.flat - opinions.expand(opinions.mean())
        degrees = opinions.expand((opinions.counts() - 1).clamp(min=1))  # a group of one has no spread anyway
        squares = opinions.expand(opinions.like(centred.square()).mean() * opinions.counts())
        standardised = (centred / (squares / degrees).sqrt()).masked_fill(flat, 0.0)
        return result.like(result.flat.masked_scatter(~result.flat.isnan(), standardised))


def _settings(part: Any) -> dict[str, Any]:
    """The settings that decide the order of the rewards."""
    return {name: value for name, value in REWARDS.dump(part).items() if name != "weight"}
