"""The log-probability of every sampled token, for the rollouts on disk."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np
from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.rollouts.rollouts import Rollouts

TokenLogprobs = list[tuple[str, float]]
"""The tokens of one completion: text and log-probability in nats."""


class RecordConfig(Config):
    """What a run writes about its rollouts, besides texts, scores and verdicts."""

    logprobs_every: int = Field(default=0, ge=0)
    """Steps between those whose rollouts hold every token with its log-probability, which the report shades. It takes
    about twice the space of the text. 0 writes none."""

    def is_due(self, step: int) -> bool:
        """Whether this step's rollouts hold log-probabilities."""
        return self.logprobs_every > 0 and step % self.logprobs_every == 0


def token_logprobs(rollouts: Rollouts, decode: Callable[[list[int]], str]) -> list[TokenLogprobs]:
    """The tokens of each completion, in the order of the rollouts.

    A token is decoded by itself, so one that holds part of a character shows as a replacement character.
    """
    text_of = cache(lambda token: decode([token]))
    offsets, logprobs = rollouts.token_ids.offsets, np.round(rollouts.logprobs.astype(float), 3).tolist()
    ids = rollouts.token_ids.values.tolist()
    return [
        [(text_of(token), logprob) for token, logprob in zip(ids[start:end], logprobs[start:end], strict=True)]
        for start, end in pairwise(offsets.tolist())
    ]
