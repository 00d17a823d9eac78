"""The share of every token in the loss of a step."""

from typing import Annotated, Literal

from pydantic import Field

from cooper_rl.config.base import Config


class TokenMean(Config):
    """Every counted token of the step weighs the same (DAPO, arXiv 2503.14476, eq. 8; used by Cooper)."""

    kind: Literal["token_mean"] = "token_mean"
    """Names this aggregation."""


class SequenceMeanTokenMean(Config):
    """Every counted completion weighs the same, and its tokens share its weight (GRPO, arXiv 2402.03300, eq. 3).

    Long wrong answers are punished less for each token than short ones.
    """

    kind: Literal["sequence_mean_token_mean"] = "sequence_mean_token_mean"
    """Names this aggregation."""


class SequenceMeanTokenSum(Config):
    """The mean over counted completions of token sums over a constant (Dr. GRPO, arXiv 2503.20783, section 3)."""

    kind: Literal["sequence_mean_token_sum"] = "sequence_mean_token_sum"
    """Names this aggregation."""
    normaliser: float = Field(gt=0)
    """The constant, in tokens: the same for every step, usually the sampler's `max_tokens`."""


AggregationConfig = Annotated[TokenMean | SequenceMeanTokenMean | SequenceMeanTokenSum, Field(discriminator="kind")]


def token_weights(
    completion_lengths: list[int], config: AggregationConfig, *, counted: list[bool], kept: list[bool]
) -> list[list[float]]:
    """One weight for each completion token (row i has `completion_lengths[i]` of them).

    `counted` rows are in the denominators; `kept` rows go through the backward pass, all others weigh exactly 0.
    - A completion masked for reaching the length limit is neither: the step is as if it had not been sampled.
    - A completion of a group without usable spread has advantage 0. With a KL term in the loss it is kept for that;
      without one it is counted and not kept, which changes no other row's gradient.

    The weights of all counted rows would sum to 1 (for `sequence_mean_token_sum`: to mean length / normaliser).
    Dropping the zeros and splitting the rest into micro-batches gives the same sum.
    Raises ValueError when a row is kept and not counted.
    """
    rows = list(zip(completion_lengths, counted, kept, strict=True))
    if any(keep and not count for _, count, keep in rows):
        raise ValueError("a kept completion must be counted, or the weights do not sum to 1")
    counted_lengths = [length for length, count, _ in rows if count]

    def weight(length: int) -> float:
        match config:
            case TokenMean():
                return 1 / sum(counted_lengths)
            case SequenceMeanTokenMean():
                return 1 / (len(counted_lengths) * length)
            case SequenceMeanTokenSum():
                return 1 / (len(counted_lengths) * config.normaliser)

    return [[weight(length)] * length if keep and length else [0.0] * length for length, _, keep in rows]
