"""Advantages: how much better a completion is than the others of its group."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from cooper_base.config.base import Config, Kinds

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from cooper_base.data.verdict import Verdict
    from cooper_rl.policy.config import AlgorithmConfig
    from cooper_rl.records import Ragged, Rollouts, Summands

EPS = 1e-6
"""Added to a std before it divides. It hardly matters, because groups without usable spread are left out first."""


@dataclass(frozen=True)
class Completions:
    """What some estimators read besides rewards, before the step's update."""

    lengths: Ragged
    """Tokens of each completion."""
    mean_logprobs: Ragged
    """The mean log-probability of each completion's tokens, in nats; NaN unless the estimator `reads_completions`."""
    summands: Summands = ()
    """The rewards that add up to the finished one, each with its weight; empty unless the estimator `reads_summands`.
    A reward is constant in groups in which it differs by no more than `algorithm.min_spread`, or has no opinion."""

    def select(self, chosen: Bool[Tensor, " P"]) -> Completions:
        summands = tuple((weight, part.select(chosen)) for weight, part in self.summands)
        return Completions(self.lengths.select(chosen), self.mean_logprobs.select(chosen), summands)

    def keep(self, kept: Bool[Tensor, " B"]) -> Completions:
        summands = tuple((weight, part.keep(kept)) for weight, part in self.summands)
        return Completions(self.lengths.keep(kept), self.mean_logprobs.keep(kept), summands)


@dataclass(frozen=True)
class AdvantagesWithMetrics:
    """Advantages with metrics, for an estimator that has some."""

    advantages: Ragged
    metrics: dict[str, float]
    """By their full names."""


@dataclass(frozen=True)
class TokenCredit:
    """For each completion, the credit of each token, which is added to the completion's advantage; and metrics."""

    advantages: Sequence[Float[np.ndarray, " T"]]
    metrics: dict[str, float]


class AdvantageConfig(Config):
    """The settings of an estimator of advantages, which is its own settings. Each kind implements `advantages`."""

    reads_model: ClassVar[bool] = False
    """Whether `token_credit` needs the run's reward model."""

    @property
    def reads_completions(self) -> bool:
        """Whether `advantages` needs `completions`, whose log-probabilities cost a pass over all completions."""
        return False

    @property
    def reads_summands(self) -> bool:
        """Whether `advantages` needs `completions` with their `summands`, the single rewards."""
        return False

    @property
    def credits_tokens(self) -> bool:
        """Whether the estimator has a `token_credit` of its own."""
        return type(self).token_credit is not AdvantageConfig.token_credit

    def check_algorithm(self, algorithm: AlgorithmConfig) -> None:
        """Raises ValueError for settings of the algorithm that do not fit the estimator."""

    def check_run(self, config: Any) -> None:
        """Raises ValueError for settings of the run, a `RunConfig`, that do not fit the estimator."""

    def of_one(self, reward: Ragged) -> Float[Tensor, " B"]:
        """What a single one of several rewards counts as before they are added, for `advantage_shares`."""
        return centred(reward)

    @abstractmethod
    def advantages(self, rewards: Ragged, completions: Completions | None = None) -> Ragged | AdvantagesWithMetrics:
        """Advantages of the step's usable groups.

        `rewards` are float64, finite, and not all equal within any group: answers without an opinion are left out
        before. `completions` are None unless the estimator reads them.
        """

    def token_credit(
        self, model: Any, rollouts: Rollouts, decode: Callable[[Sequence[int]], str]
    ) -> TokenCredit | None:
        """What to add to the advantage of each token, before the step's updates; None adds nothing.

        `model` is the run's `RewardModel`; None if none is loaded. `decode` gives the text of token ids, without
        special tokens.
        """
        return None


ADVANTAGES = Kinds("advantage", "cooper_rl.policy.estimators", ["advantages"], base=AdvantageConfig)
"""The kinds of `algorithm.advantages`."""


def usable_groups(rewards: Ragged, min_spread: float, summands: Summands = ()) -> Bool[Tensor, " P"]:
    """Groups whose largest and smallest reward differ by more than `min_spread` (in units of the reward).

    Answers without an opinion (NaN) are left out, so a group needs two opinions. With `summands`, a group is usable in
    which one of these differs so, even if they add up to the same reward.
    The spread is the range, not the std, so one different completion counts the same for any group size N. The
    threshold is needed because reward-model scores are never exactly equal: without it, dividing by the std would
    amplify their noise to advantages of about 1. Raises ValueError on an infinite reward.
    """
    kept = ~rewards.flat.isnan()
    rewards = rewards.opinions()
    _require_finite(rewards)
    if not summands:
        return rewards.amax() - rewards.amin() > min_spread
    parts = [part.keep(kept) for _, part in summands]
    usable = [part.amax() - part.amin() > min_spread for part in parts]
    return usable[0].new_tensor([any(row) for row in zip(*(part.tolist() for part in usable), strict=True)])


def estimate(
    rewards: Ragged,
    config: AdvantageConfig,
    usable: Bool[Tensor, " P"] | None = None,
    completions: Completions | None = None,
) -> AdvantagesWithMetrics:
    """Advantages in the dtype of `rewards`, computed in float64. They are exactly 0 in groups that are not `usable`.

    An answer without an opinion (its reward is NaN) has advantage 0, and those of the others are what they would be if
    it had not been sampled: no estimator sees it. `usable` comes from `usable_groups`; by default, every group with any
    spread is usable. Groups may differ in size. An estimator that reads `completions` needs them. Raises ValueError on
    an infinite reward.
    """
    usable = usable_groups(rewards, min_spread=0.0) if usable is None else usable
    kept = ~rewards.flat.isnan()
    opinions = rewards.keep(kept)
    _require_finite(opinions)
    usable = usable & (opinions.counts() > 1)
    result, metrics = rewards.flat.new_zeros(rewards.flat.shape), {}
    if usable.any():
        chosen = opinions.select(usable)
        chosen = chosen.like(chosen.flat.double())
        of_chosen = None if completions is None else completions.keep(kept).select(usable)
        estimated = estimate_usable(config, chosen, of_chosen)
        result[rewards.expand(usable) & kept] = estimated.advantages.flat.to(result.dtype)
        metrics = estimated.metrics
    return AdvantagesWithMetrics(rewards.like(result), metrics)


def estimate_usable(
    config: AdvantageConfig, rewards: Ragged, completions: Completions | None = None
) -> AdvantagesWithMetrics:
    """What an estimator makes of usable groups: for an estimator that builds on another. See `AdvantageConfig`."""
    if (config.reads_completions or config.reads_summands) and completions is None:
        raise ValueError("the estimator reads completions, but none are given")
    estimated = config.advantages(rewards, completions)
    return estimated if isinstance(estimated, AdvantagesWithMetrics) else AdvantagesWithMetrics(estimated, {})


def token_credit(
    config: AdvantageConfig,
    model: Any,
    rollouts: Rollouts,
    rewards: Ragged,
    decode: Callable[[Sequence[int]], str],
) -> TokenCredit | None:
    """The estimator's credit of tokens; see `AdvantageConfig.token_credit`, which never sees an answer without an
    opinion (its reward is NaN). The tokens of such an answer have credit 0."""
    kept = ~rewards.flat.isnan().numpy()
    if kept.all():
        return config.token_credit(model, rollouts, decode)
    credit = config.token_credit(model, rollouts.keep(kept), decode)
    if credit is None:
        return None
    rows, found = iter(credit.advantages), [np.zeros(length) for length in rollouts.token_ids.lengths]
    return TokenCredit([next(rows) if keep else none for keep, none in zip(kept, found, strict=True)], credit.metrics)


def unverified_advantage(advantages: Ragged, verdicts: Sequence[Sequence[Verdict]]) -> dict[str, float]:
    """The share of the sum of |advantage| in groups that the rule judges and in which it accepts no answer.

    Nothing if the sum is 0. A group on which the rule is silent counts in the sum alone.

    Such a group can teach no right answer. What it teaches is noise in the reward, or a hack.
    """
    weights = np.array([sum(map(abs, row)) for row in advantages.rows()])
    unverified = np.array(["correct" not in row and row.count("silent") < len(row) for row in verdicts])
    total = float(weights.sum())
    return {"policy/unverified_advantage": float(weights[unverified].sum()) / total} if total else {}


def _require_finite(rewards: Ragged) -> None:
    broken = [p for p, group in enumerate(rewards.groups()) if not group.isfinite().all()]
    if broken:
        raise ValueError(f"infinite rewards in groups {broken}; a reward is a finite number, or NaN for no opinion")


@ADVANTAGES.register
class GRPO(AdvantageConfig):
    """(r - mean) / (max(std, std_floor) + EPS) inside each group, with N - 1 in the denominator of the std.

    Shao et al. 2024 (DeepSeekMath, arXiv 2402.03300, section 4.1.2). The paper does not say which std it means;
    widely used trainers divide by N - 1. The floor is not in the paper.
    """

    kind: Literal["grpo"] = "grpo"
    std_floor: float = Field(default=0.0, ge=0)
    """Lower bound of the std, in units of the reward; 0 means none. `algorithm.min_spread` leaves out groups whose
    rewards hardly differ, and every group above it counts in full: rewards of .0005 to .02 have advantages as large as
    rewards of 0 to 1. With a floor, advantages shrink with the spread instead: they are at most (range of the group's
    rewards) / std_floor. Rewards of 0 and 1 have a std of at least 1 / sqrt(N) in a group of N, so a floor below that
    does not touch groups with right and wrong answers of a rule."""

    def advantages(self, rewards: Ragged, completions: Completions | None = None) -> Ragged:
        divisor = rewards.std().clamp(min=self.std_floor) + EPS
        return rewards.like(centred(rewards) / rewards.expand(divisor))


def centred(rewards: Ragged) -> Float[Tensor, " B"]:
    """Each reward minus the mean of its group."""
    return rewards.flat - rewards.expand(rewards.mean())


def advantage_shares(config: AdvantageConfig, summands: Summands) -> dict[str, float]:
    """How much of the absolute advantage each of several rewards makes, `policy/advantage_share_1` and so on: of what
    the estimator makes of it alone, times its weight."""
    if len(summands) < 2:
        return {}
    sizes = [(weight * config.of_one(part)).nan_to_num(nan=0.0).abs().sum().item() for weight, part in summands]
    shares = enumerate(sizes, 1) if sum(sizes) else ()
    return {f"policy/advantage_share_{number}": size / sum(sizes) for number, size in shares}
