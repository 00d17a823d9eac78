"""Estimators of advantages with other baselines and scales than GRPO's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cooper_rl.policy.advantages import ADVANTAGES, EPS, AdvantageConfig, Completions, centred

if TYPE_CHECKING:
    from cooper_rl.records import Ragged


@ADVANTAGES.register
class DrGRPO(AdvantageConfig):
    """r - mean inside each group. Nothing is divided, so easy and hard problems keep their weight.

    Liu et al. 2025 ("Understanding R1-Zero-like training", arXiv 2503.20783, section 3). The paper's loss also
    divides by a constant length; for that, combine it with the aggregation `sequence_mean_token_sum`.
    """

    kind: Literal["dr_grpo"] = "dr_grpo"

    def advantages(self, rewards: Ragged, completions: Completions | None = None) -> Ragged:
        return rewards.like(centred(rewards))


@ADVANTAGES.register
class RLOO(AdvantageConfig):
    """r minus the mean of the *other* completions, an unbiased baseline. This equals (r - mean) N / (N - 1).

    Ahmadian et al. 2024 ("Back to basics", arXiv 2402.14740, section 2).
    """

    kind: Literal["rloo"] = "rloo"

    def advantages(self, rewards: Ragged, completions: Completions | None = None) -> Ragged:
        n = rewards.expand(rewards.counts())
        return rewards.like(centred(rewards) * n / (n - 1))


@ADVANTAGES.register
class ReinforcePPBaseline(AdvantageConfig):
    """r - group mean, divided by the std of that difference over all usable groups of the step.

    Hu et al. 2025 (REINFORCE++ with baseline, arXiv 2501.03262). The std is over completions, each counted once. The
    differences have mean zero by construction, so the std is the root of their mean square (no N - 1).
    verl reads the paper differently. It normalises over tokens, so a long completion counts more in the std, and it
    subtracts the differences' mean over tokens, which is not zero if lengths differ.
    """

    kind: Literal["reinforce_pp_baseline"] = "reinforce_pp_baseline"

    def advantages(self, rewards: Ragged, completions: Completions | None = None) -> Ragged:
        differences = centred(rewards)
        return rewards.like(differences / (differences.square().mean().sqrt() + EPS))
