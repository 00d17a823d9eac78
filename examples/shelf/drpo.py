"""DRPO's advantages: right answers share by brevity, wrong ones by their log-probability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from cooper_rl import AdvantageConfig

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from cooper_rl import Completions, Ragged
    from cooper_rl.policy.config import AlgorithmConfig


class DRPO(AdvantageConfig):
    """Positives share +1 by brevity, negatives share -1 by their log-probability, inside each group.

    Li et al. 2025 (arXiv 2510.04474). The paper maximises, for each problem, sum_i w_i (s_i - tau log sum_j exp(s_j /
    tau)) over right answers i and wrong ones j, where s is the mean log-probability of an answer's tokens and w_i is
    proportional to exp((1 - length / max_tokens) / length_temperature), with sum 1. Its gradient is that of these
    advantages with the aggregation `sequence_mean_token_mean`, divided by the group's size:
    A_i = w_i and A_j = -softmax(s / tau)_j. A length penalty in the reward, in contrast, can make a long right answer
    worse than a wrong one. s is taken before the step's update and does not move with `algorithm.minibatches`.

    The paper's hinge on the KL divergence is not part of it; set `algorithm.kl`. A group without positives or without
    negatives has advantage 0.
    """

    max_tokens: int = Field(ge=1)
    """The length that counts as longest, usually the sampler's `max_tokens`."""
    length_temperature: float = Field(default=0.1, gt=0)
    """How little brevity counts among positives (lambda)."""
    temperature: float = Field(default=10.0, gt=0)
    """How little probability counts among negatives (tau)."""
    threshold: float = 0.5
    """An answer is positive from this reward on."""

    @property
    def reads_completions(self) -> bool:
        return True

    def check_algorithm(self, algorithm: AlgorithmConfig) -> None:
        """Raises ValueError unless the aggregation is `sequence_mean_token_mean`."""
        if getattr(algorithm.aggregation, "kind", None) != "sequence_mean_token_mean":
            raise ValueError(
                "advantages of kind drpo weigh the mean log-probabilities of completions; set "
                "aggregation: {kind: sequence_mean_token_mean}"
            )

    def advantages(self, rewards: Ragged, completions: Completions | None = None) -> Ragged:
        if completions is None:
            raise ValueError("drpo reads completions, but none are given")
        positive = rewards.flat >= self.threshold
        brevity = (1 - completions.lengths.flat.double() / self.max_tokens) / self.length_temperature
        share_of_positives = _softmax(rewards.like(brevity), positive)
        share_of_negatives = _softmax(
            rewards.like(completions.mean_logprobs.flat.double() / self.temperature), ~positive
        )
        share = rewards.like(positive.double()).mean()
        has_both = rewards.expand((share > 0) & (share < 1))
        return rewards.like((share_of_positives - share_of_negatives).where(has_both, 0.0))


def _softmax(values: Ragged, chosen: Bool[Tensor, " B"]) -> Float[Tensor, " B"]:
    """softmax over the chosen values of each group; 0 elsewhere."""
    masked = values.flat.masked_fill(~chosen, float("-inf"))
    highest = values.expand(values.like(masked).amax()).nan_to_num(neginf=0.0)
    raised = (masked - highest).exp()
    sums = values.expand(values.like(raised).mean() * values.counts())
    return raised / sums.where(sums > 0, 1.0)
