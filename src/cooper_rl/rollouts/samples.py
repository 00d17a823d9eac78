"""The result of a sampler: completions in columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from cooper_rl.rollouts.answers import Answer
from cooper_rl.rollouts.columns import Column


@dataclass(frozen=True)
class Samples:
    """B completions, in the order of the prompts. Completions of the same prompt are adjacent.

    `token_ids` are exactly the sampled tokens, including the end-of-sequence token if it was sampled. `logprobs` has
    the log-probability (nats) of each token under the model at the sampling temperature (at 1 for greedy sampling, that
    is, temperature 0). Filters such as top-p do not affect them, so they are comparable to a learner's. `texts` are
    decoded without special tokens and end before a stop string.
    """

    token_ids: Column
    """B rows."""
    logprobs: Float[np.ndarray, " tokens"]
    stopped: Bool[np.ndarray, " B"]
    """False for a completion that was cut at the length limit."""
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def logprob_rows(self) -> Column:
        """The log-probabilities of each completion."""
        return Column(self.logprobs, self.token_ids.offsets)

    def answers(self) -> Iterator[Answer]:
        """Each completion as text."""
        for text, stopped, tokens in zip(self.texts, self.stopped, self.token_ids.lengths, strict=True):
            yield Answer(text, bool(stopped), tokens=int(tokens))
