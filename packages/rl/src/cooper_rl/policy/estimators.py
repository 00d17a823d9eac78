"""The estimators of advantages beside GRPO, the default, which is with what all of them share in `advantages`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from cooper_rl.engines.losses.policy import pulls_in
from cooper_rl.policy.advantages import ADVANTAGES, EPS, AdvantageConfig, Completions, centred

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from cooper_rl.policy.config import AlgorithmConfig
    from cooper_rl.records import Ragged, Summands


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
            total = total + weight * self.of_one(part)
        return rewards.like(total / (total.std() + 1e-4))

    def of_one(self, reward: Ragged) -> Float[Tensor, " B"]:
        """Its z: 0 where it has no opinion or does not differ in the group."""
        reward = reward.like(reward.flat.double())
        return (centred(reward) / (reward.expand(reward.std()) + 1e-4)).nan_to_num(nan=0.0)


def differing(rewards: Ragged, summands: Summands, min_spread: float) -> Summands:
    """The summands for an estimator that reads them, each 0 in groups in which it differs by at most `min_spread`, or
    is not finite: among the answers whose finite reward, in `rewards`, is an opinion."""
    result, kept = [], ~rewards.flat.isnan()
    for weight, part in summands:
        opinions = part.keep(kept)
        spread = (opinions.amax() - opinions.amin()).nan_to_num(nan=0.0, posinf=0.0)
        result.append((weight, part.like(part.flat.where(part.expand(spread > min_spread), 0.0))))
    return tuple(result)
