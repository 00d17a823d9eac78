"""The estimator GDPO."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from cooper_rl import AdvantageConfig
from cooper_rl.engines.losses.policy import pulls_in
from cooper_rl.policy.advantages import ADVANTAGES

if TYPE_CHECKING:
    from cooper_rl import Completions, Ragged
    from cooper_rl.policy.config import AlgorithmConfig


@ADVANTAGES.register
class GDPO(AdvantageConfig):
    """Each of the `rewards` is normalised in its group before they are added, and the sum is normalised over the step.

    Liu et al. 2026 (GDPO, arXiv 2601.05242), as TRL (`normalize_then_sum`), verl and ms-swift have it: for reward k of
    weight w_k, z_k = (r_k - mean) / (std + eps) in the group (std with N - 1), s = sum of w_k z_k, and the advantage is
    s / (std of s + eps) over the completions of the step's usable groups (N - 1). The mean of s is 0 in every group.
    A reward of large scale thus counts no more than its weight says, and completions with other rewards but the same
    sum are told apart. eps is 1e-4, as in TRL; verl takes the std over tokens.

    A reward with no opinion on a group, or that differs in it by no more than `algorithm.min_spread`, adds 0 there.
    """

    kind: Literal["gdpo"] = "gdpo"

    @property
    def reads_summands(self) -> bool:
        return True

    def check_algorithm(self, algorithm: AlgorithmConfig) -> None:
        """Raises ValueError for a KL penalty in the reward, which is in none of the rewards that are normalised."""
        if pulls_in(algorithm.kl, "reward"):
            raise ValueError("advantages of kind gdpo normalise each reward by itself; set kl.where: loss")

    def check_run(self, config: Any) -> None:
        """Raises ValueError for shapings, which transform the sum."""
        if config.shaping:
            raise ValueError("advantages of kind gdpo read the single rewards, so shaping has no effect; remove it")

    def advantages(self, rewards: Ragged, completions: Completions | None = None) -> Ragged:
        if completions is None or not completions.summands:
            raise ValueError("gdpo reads the rewards that add up to the finished one, but none are given")
        total = rewards.flat.new_zeros(len(rewards.flat))
        for weight, part in completions.summands:
            part = part.like(part.flat.double())
            z = (part.flat - part.expand(part.mean())) / (part.expand(part.std()) + 1e-4)
            total = total + weight * z.nan_to_num(nan=0.0)
        return rewards.like(total / (total.std() + 1e-4))
