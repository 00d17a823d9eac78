"""What rewards and shapings are: protocols, settings, the registries of their kinds, and the metrics of a step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

from cooper_audit.run.metric_names import AREAS, area_of
from cooper_base.config.base import Config, Kinds, is_outside

if TYPE_CHECKING:
    from cooper_base.data.problem import Problem
    from cooper_rl.records import Ragged, Summands
    from cooper_rl.reward.context import StepContext

T = TypeVar("T")


class Count(float):
    """A metric that adds up: of the calls that score a step the sum is recorded, of other metrics the mean."""


@dataclass(frozen=True)
class Scores:
    """One reward for every answer of a step, and its breakdown.

    A reward of NaN says that there is no opinion on the answer: a function returned None, a judge was not heard, the
    rule is silent. The policy learns nothing from it, and it counts in no baseline.

    `parts` holds each component under its own name (`rule`, `reward_model`, `logit`, …). `metrics` holds step-level
    numbers under their full name, `area/name`: means over the answers, and counts (`Count`). What a class from outside
    Cooper names gets a namespace, so that it never takes the place of something that Cooper records: see `named_parts`
    and `named_metrics`.
    """

    rewards: Ragged
    parts: dict[str, Ragged] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    summands: Summands = ()
    """The rewards that add up to `rewards`, each with its weight, where they are a sum."""


class Reward(Protocol):
    """Scores the answers of a step. Groups may differ in size.

    The result depends on the context, never on earlier calls of `score`. A reward that keeps state across steps
    (`Remembers`) changes it only in `commit`.
    """

    def score(self, context: StepContext) -> Scores: ...


class Shaping(Protocol):
    """Transforms finished rewards. Shapings run in the order of the list `shaping` and may keep state (`Remembers`)."""

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged: ...


@runtime_checkable
class Measures(Protocol):
    """A shaping that has metrics of its own, under their full name `area/name`, for answers that it has just shaped."""

    def metrics(self, context: StepContext) -> dict[str, float]: ...


@runtime_checkable
class Remembers(Protocol):
    """A reward or shaping that keeps state across steps, such as a running mean."""

    def commit(self, contexts: Sequence[StepContext]) -> None:
        """Update the state with a finished step, given the contexts of all its `score` calls."""

    def state(self) -> Any:
        """The state as JSON values, for a checkpoint."""
        ...

    def restore(self, state: Any) -> None: ...


@runtime_checkable
class Closes(Protocol):
    """A reward or shaping with connections to end."""

    def close(self) -> None: ...


class PartConfig(Config):
    """What the settings of rewards and shapings share."""

    reads_model: ClassVar[bool] = False
    """Whether it reads the run's reward model, which is loaded only if it learns or something reads it."""
    reads_environment: ClassVar[bool] = False
    """Whether it reads what an environment's `get_reward()` returned."""

    def build(self) -> Any:
        """The reward or shaping. A record that keeps no state can be its own: it has `score`, or `shape`."""
        return self

    @property
    def compares_answers(self) -> bool:
        """Whether what an answer is paid depends on the other answers of its group. A trainer that scores one answer at
        a time is refused then. A class from outside Cooper counts as comparing unless it says otherwise, with
        `compares_answers: ClassVar[bool] = False`."""
        return is_outside(self)

    def check(self) -> None:
        """Raises InputError if a server that it needs does not answer."""

    def check_problems(self, problems: Sequence[Problem]) -> None:
        """Raises InputError if a problem lacks something that it needs, such as a reference solution."""


class RewardConfig(PartConfig):
    """Settings of one reward."""

    needs_reference: ClassVar[bool] = True
    """Whether problems need a reference answer that the rule accepts."""
    weight: float = 1.0
    """Factor of this reward in the sum of all rewards."""


class ShapingConfig(PartConfig):
    """Settings of one shaping."""

    affine_per_group: ClassVar[bool] = False
    """Whether it does no more than scale each group's rewards by a positive factor and add a constant to them. Under
    the estimator `grpo` such a shaping changes no gradient, and a run's configuration refuses it."""

    @property
    def needs_reference(self) -> bool:
        """Whether problems need a reference answer that the rule accepts."""
        return False

    def check_place(self, rewards: Sequence[Any], before: Sequence[Any]) -> None:
        """Raises ValueError if it cannot follow the shapings `before`, or cannot shape these `rewards`."""


def _of_grader() -> type[Config]:
    from cooper_rl.reward.kinds.grader import GraderRewardConfig  # noqa: PLC0415 - a kind, which derives from these

    return GraderRewardConfig


REWARDS = Kinds("reward", "cooper_rl.reward.kinds", needs=["build"], of_grader=_of_grader, base=RewardConfig)
"""The kinds of reward: `kind: name`, `kind: package.module:Class` for a config record outside this package, or a
grader."""

SHAPINGS = Kinds("shaping", "cooper_rl.reward.shaping", needs=["build"], base=ShapingConfig)
"""The kinds of shaping, selected in the same way."""


def metrics_of_calls(calls: Sequence[tuple[Scores, int]]) -> dict[str, float]:
    """The metrics of several calls together, each with the number of its answers: sums of counts, means of the rest."""
    metrics: dict[str, float] = {}
    for name in dict.fromkeys(name for scores, _ in calls for name in scores.metrics):
        values = [(scores.metrics[name], answers) for scores, answers in calls if name in scores.metrics]
        total = sum(answers for _, answers in values)
        if isinstance(values[0][0], Count):
            metrics[name] = Count(sum(value for value, _ in values))
        else:
            metrics[name] = sum(value * answers for value, answers in values) / total if total else values[-1][0]
    return metrics


USERS = "part/"
"""The beginning of names that somebody else's reward or shaping has given."""


def named_parts(reward: object, parts: Mapping[str, Ragged], computed: Mapping[str, Ragged]) -> dict[str, Ragged]:
    """The parts of a reward under the names of the record: `part/` comes before those of a class from outside Cooper,
    except where it passes on what the step's context has `computed`."""
    if not is_outside(reward):
        return dict(parts)
    return {name if computed.get(name) is part else f"{USERS}{name}": part for name, part in parts.items()}


def named_metrics(part: object, metrics: Mapping[str, float]) -> dict[str, float]:
    """The metrics of a reward or shaping: `part/` comes before a name that a class from outside Cooper gives in one of
    Cooper's own areas, such as `reward/mean`."""
    if not is_outside(part):
        return dict(metrics)
    return {f"{USERS}{name}" if area_of(name) in AREAS else name: value for name, value in metrics.items()}


def merged(earlier: Mapping[str, T], later: Mapping[str, T], place: int) -> dict[str, T]:
    """Both together. `_place` is appended to a name in `later` that is taken already."""
    together = dict(earlier)
    for name, value in later.items():
        free = name
        while free in together:
            free = f"{free}_{place}"
        together[free] = value
    return together


def reward_metrics(scores: Scores) -> dict[str, float]:
    """`reward/mean`, `reward/std` and `reward/group_spread` before shaping; with shaping, `reward/shaped_*` after it.

    `reward/no_opinion` is the share of completions without an opinion, `reward/non_finite` the share of those whose
    reward is infinite. The other metrics cover the rest: they are NaN if all opinions are infinite, and missing without
    any. The spread is the largest minus the smallest reward of a group.
    """
    if (before := scores.parts.get("unshaped")) is None:
        return _summary(scores.rewards, "reward/")
    return _summary(before, "reward/") | _summary(scores.rewards, "reward/shaped_")


def _summary(rewards: Ragged, prefix: str) -> dict[str, float]:
    values, opinions = rewards.flat[rewards.flat.isfinite()], rewards.opinions()
    spreads = opinions.amax() - opinions.amin()
    shares = {
        f"{prefix}non_finite": rewards.flat.isinf().float().mean().item(),
        f"{prefix}no_opinion": rewards.flat.isnan().float().mean().item(),
    }
    if not len(opinions.flat):
        return shares
    return shares | {
        f"{prefix}mean": values.mean().item(),
        f"{prefix}std": values.std(unbiased=False).item() if len(values) else math.nan,
        f"{prefix}group_spread": spreads[spreads.isfinite()].mean().item(),
    }
