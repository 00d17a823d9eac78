"""R2M's label-free update: the reward model learns from its own order, without any verdict.

R2M (arXiv 2601.22664, P). In each group the completion that the reward model itself scores highest is `best`, the
lowest `worst`, and with z the group's scores less their mean, by their std (N - 1):

    loss = .7 * -log sigmoid(best - worst) + .3 * entropy(softmax(z)).

The entropy does not change if scores are scaled or shifted. Here the pair trains (`cooptimization.loss: {kind:
pairwise, anchor: 0}`), and the whole loss is only measured: the entropy is of a group, not of a pair. R2M also feeds
the reward model the policy's hidden states, and trains attention and head alone, which this does not.

Silence: no verdict is read anywhere, so it is like everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cooper_rl import MadePairs, PairSource, PairSourceConfig
from cooper_rl.reward.pairs.base import PAIRS

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from cooper_rl import PairGroup, PairInputs


@PAIRS.register
class BestWorstPairs(PairSourceConfig):
    """One pair a group: the completion that the reward model scores highest, above the one it scores lowest."""

    metric_names: ClassVar[tuple[str, ...]] = ("pairs/r2m_loss",)
    needs_reference: ClassVar[bool] = False
    kind: Literal["best_worst"] = "best_worst"

    def build(self, inputs: PairInputs) -> BestWorstSource:
        return BestWorstSource()


class BestWorstSource(PairSource):
    """See `BestWorstPairs`. A group whose scores are all the same, or with one that is not finite, has no pair."""

    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Any]) -> MadePairs:
        import torch  # noqa: PLC0415 - configuration records do without it

        made, losses = [], []
        for group in groups:
            scores = torch.tensor(group.logits, dtype=torch.float64)
            best, worst = int(scores.argmax()), int(scores.argmin())
            texts = group.texts
            if not scores.isfinite().all() or texts[best] == texts[worst] or scores[best] == scores[worst]:
                continue
            made.append(group.pair(texts[best], texts[worst], "best_worst"))
            losses.append(r2m_loss(scores).item())
        return MadePairs(made, {"pairs/r2m_loss": sum(losses) / len(losses)} if losses else {})


def entropy(scores: Float[Tensor, " N"]) -> Float[Tensor, ""]:
    """The entropy (nats) of softmax((scores - mean) / std), with N - 1 in the std."""
    logs = ((scores - scores.mean()) / scores.std()).log_softmax(0)
    return -(logs.exp() * logs).sum()


def r2m_loss(scores: Float[Tensor, " N"]) -> Float[Tensor, ""]:
    """R2M's loss of a group's scores."""
    from torch.nn.functional import softplus  # noqa: PLC0415 - as above

    return 0.7 * softplus(scores.min() - scores.max()) + 0.3 * entropy(scores)
