"""Credit of single tokens, beside the advantage of their completion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

    from cooper_base.data.answer import AnswerGroup
    from cooper_rl.policy.advantages import AdvantageConfig
    from cooper_rl.records import Ragged, Rollouts


@dataclass(frozen=True)
class TokenCredit:
    """For each completion, the credit of each token, which is added to the completion's advantage; and metrics."""

    advantages: Sequence[Float[np.ndarray, " T"]]
    metrics: dict[str, float]


class AnswerScorer(Protocol):
    """The run's reward model, as far as an estimator reads it."""

    def logits(self, groups: Sequence[AnswerGroup]) -> Ragged:
        """The logit of every answer."""
        ...


def token_credit(
    config: AdvantageConfig,
    model: AnswerScorer | None,
    rollouts: Rollouts,
    rewards: Ragged,
    decode: Callable[[Sequence[int]], str],
) -> TokenCredit | None:
    """The estimator's credit of tokens; see `AdvantageConfig.token_credit`, which never sees an answer without an
    opinion (its reward is NaN). The tokens of such an answer have credit 0."""
    kept = ~rewards.flat.isnan().numpy()
    if kept.all():
        return config.token_credit(model, rollouts, decode)
    credit = config.token_credit(model, rollouts.keep(kept), decode)
    if credit is None:
        return None
    rows, found = iter(credit.advantages), [np.zeros(length) for length in rollouts.token_ids.lengths]
    return TokenCredit([next(rows) if keep else none for keep, none in zip(kept, found, strict=True)], credit.metrics)
