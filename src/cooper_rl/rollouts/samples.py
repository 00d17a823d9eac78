"""What a sampler returns: completions in columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from cooper_rl.rollouts.answers import Answer
from cooper_rl.rollouts.columns import Column


@dataclass(frozen=True)
class Samples:
    """B completions; those of one prompt stand next to each other, in the order of the prompts.

    `token_ids` are exactly the tokens drawn, including the end-of-sequence token if it was drawn. `logprobs` has one
    number for each of them: its log-probability (nats) under the sampled model at the sampling temperature (at 1 where
    that is 0) with no filter, so that it compares with a learner's. `texts` are decoded without special tokens and cut
    before a stop string.
    """

    token_ids: Column
    """B rows."""
    logprobs: Float[np.ndarray, " tokens"]
    stopped: Bool[np.ndarray, " B"]
    """False where a completion was cut at the length limit."""
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
