"""The log-probability of every sampled token, for the rollouts on disk."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.rollouts import Rollouts


class RecordConfig(Config):
    """What a run writes about its rollouts, besides texts, scores and verdicts."""

    logprobs_every: int = Field(default=0, ge=0)
    """Steps between those whose rollouts hold every token with its log-probability, which the report shades. It takes
    about twice the space of the text. 0 writes none."""

    def is_due(self, step: int) -> bool:
        """Whether this step's rollouts hold log-probabilities."""
        return self.logprobs_every > 0 and step % self.logprobs_every == 0


def token_logprobs(rollouts: Rollouts, decode: Callable[[list[int]], str]) -> list[dict[str, Any]]:
    """For each completion, in the order of the rollouts: its `pieces`, the texts of its tokens, and their `logprobs`.

    Log-probabilities are in nats. A token is decoded by itself, so one that holds part of a character shows as a
    replacement character.
    """
    text_of = cache(lambda token: decode([token]))
    logprobs = np.round(rollouts.logprobs.astype(float), 3).tolist()
    pieces = [text_of(token) for token in rollouts.token_ids.values.tolist()]
    return [
        {"pieces": pieces[start:end], "logprobs": logprobs[start:end]}
        for start, end in pairwise(rollouts.token_ids.offsets.tolist())
    ]
