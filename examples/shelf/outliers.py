"""Advantages made from those of another estimator: without those that stand out, as in StableReinforce."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from cooper_lab.designs.outcome import OutcomeAdvantages
from cooper_rl.policy.advantages import EPS, GRPO, AdvantagesWithMetrics

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from cooper_rl import Completions, Ragged, RunConfig
    from cooper_rl.policy.config import AlgorithmConfig


class WithoutOutliers(OutcomeAdvantages):
    """Advantages that differ from the step's mean by more than `max_z` standard deviations become 0.

    See `without_outliers`. None of N completions differs by more than sqrt(N - 1), where N is a step's or, under
    `grpo`, a group's: 3 needs at least 11. A value that cannot act is refused.
    """

    metric_names: ClassVar[tuple[str, ...]] = ("policy/advantage_outliers",)
    max_z: float = Field(gt=0)
    """The largest difference that counts, in standard deviations of the step's advantages."""

    def check_run(self, config: RunConfig) -> None:
        check_outliers(self, config.algorithm, config.problems_per_step, config.rollout.n)
        super().check_run(config)

    def advantages(self, rewards: Ragged, completions: Completions | None = None) -> AdvantagesWithMetrics:
        import torch  # noqa: PLC0415 - configuration records do without torch

        outcome = self.of_outcome(rewards, completions)
        every = torch.ones(len(rewards.sizes), dtype=torch.bool)
        kept, share = without_outliers(outcome.advantages, every, self.max_z)
        return AdvantagesWithMetrics(kept, {**outcome.metrics, "policy/advantage_outliers": share.item()})


def without_outliers(advantages: Ragged, counted: Bool[Tensor, " P"], max_z: float) -> tuple[Ragged, Float[Tensor, ""]]:
    """The advantages with 0 where they differ from their mean by more than `max_z` std, and the share set to 0.

    Mean and std (N in the denominator) are over the completions of the `counted` groups, and so is the share. Of N
    values none differs by more than sqrt(N - 1) std, so a `max_z` of 3 never acts on fewer than 11 completions.
    StableReinforce (R1-Reward, arXiv 2505.02835); its code compares with mean +- 3, which is not the z-score of the
    paper.
    """
    inside = advantages.expand(counted)
    flat = advantages.flat
    if not inside.any():
        return advantages, flat.new_zeros(())
    mean, std = flat[inside].mean(), flat[inside].std(correction=0)
    outlying = inside & ((flat - mean).abs() > max_z * std)
    return advantages.like(flat.masked_fill(outlying, 0.0)), outlying[inside].to(flat.dtype).mean()


def check_outliers(advantages: WithoutOutliers, algorithm: AlgorithmConfig, problems: int, n: int) -> None:
    """Raises ValueError for a `max_z` that no advantage of a step can exceed.

    None of M numbers is further from their mean than sqrt(M - 1) of their standard deviations (M in the denominator).
    In a step M is `problems` times `n` completions. Under `grpo`, however, every group of `n` has mean 0 and the same
    standard deviation, so its own bound, sqrt(n - 1), is that of the step. A floor of the std, or a `min_spread` that
    is not large beside `EPS`, makes groups differ.
    """
    grpo, largest = advantages.outcome, advantages.max_z
    alike = isinstance(grpo, GRPO) and not grpo.std_floor and algorithm.min_spread / 1000 >= EPS
    count, what = (n, "group under advantages of kind grpo") if alike else (problems * n, "step")
    if largest >= math.sqrt(count - 1):
        bound = math.sqrt(count - 1)
        raise ValueError(
            f"algorithm.advantages.max_z: {largest:g} cannot act: none of the {count} completions of a {what} is "
            f"further than sqrt({count} - 1) = {bound:.2f} standard deviations from the mean; set it below that, take "
            f"more completions (at least {math.floor(largest**2) + 2}), or remove it"
        )
