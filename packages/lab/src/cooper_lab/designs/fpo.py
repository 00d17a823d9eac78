"""FPO: an answer pays for how much it would move the reward model.

Foresighted policy optimisation (arXiv 2605.04266, S: a summary, so check before you cite; its gamma is unknown, so the
default is ours). A policy whose answers move the reward model's weights can move them in its own favour:

- `practical`: r - gamma * ||grad r||^2;
- `relaxed`: r - gamma * (r - U) * ||grad r||^2, with U the true utility, so that it acts where r is wrong.

The gradient of r = sigmoid(logit) is by the weights of the linear head alone: r^2 (1 - r)^2 ||state||^2, or ||state||^2
with `of: logit`. This costs a forward pass. A head's gradient is its state's norm, which may follow length, not hacks.

Silence: U is the rule's verdict where it judges; where it is silent, `relaxed` is `practical`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from cooper_rl import ShapingConfig
from cooper_rl.reward.base import SHAPINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxtyping import Float
    from torch import Tensor

    from cooper_rl import Ragged, StepContext


@SHAPINGS.register
class FPO(ShapingConfig):
    """Subtracts what an answer would move the reward model's head by. It follows any rewards: Cooper's too."""

    metric_names: ClassVar[tuple[str, ...]] = ("shaping/fpo_gradient",)
    reads_model: ClassVar[bool] = True
    compares_answers: ClassVar[bool] = False
    kind: Literal["fpo"] = "fpo"
    form: Literal["practical", "relaxed"] = "practical"
    """Whether all answers pay, or those whose reward is not the verdict."""
    gamma: float = Field(default=0.1, ge=0)
    """Factor of the squared norm."""
    of: Literal["probability", "logit"] = "probability"
    """Whose gradient: of what pays by default, or of the score of a run with `pays: logit`."""

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        """Raises InputError for a reward model without a linear head, and for an engine that cannot show states."""
        squared, paid = self._squared(context), rewards.flat.double()
        return rewards.like(fpo(paid, squared, self.gamma, context.correct.flat if self.form == "relaxed" else None))

    def metrics(self, context: StepContext) -> Mapping[str, float]:
        """`shaping/fpo_gradient`: the mean squared norm."""
        return {"shaping/fpo_gradient": self._squared(context).mean().item()}

    def _squared(self, context: StepContext) -> Float[Tensor, " B"]:
        squared = context.once((type(self), id(context.model)), lambda: state_norms(context))
        r = context.probabilities.flat.double()
        return squared if self.of == "logit" else (r * (1 - r)) ** 2 * squared


def state_norms(context: StepContext) -> Float[Tensor, " B"]:
    """||state||^2 of every answer: the squared gradient of its logit by the head's weights (float64)."""
    from cooper_rl import InputError  # noqa: PLC0415

    states = getattr(context.model.learner, "states", None)
    if states is None:
        raise InputError("shaping fpo reads the states of a reward model of this process; use engine: {kind: local}")
    rows = [(g.problem.question, g.problem.answer, a.transcript) for g in context.groups for a in g.answers]
    return states(context.model.encoder.encode_all(rows)).double().square().sum(1)


def fpo(
    rewards: Float[Tensor, " B"],
    squared: Float[Tensor, " B"],
    gamma: float,
    utility: Float[Tensor, " B"] | None = None,
) -> Float[Tensor, " B"]:
    """The shaped rewards. `utility` is U, NaN where nobody knows it; None is `practical`."""
    if utility is None:
        return rewards - gamma * squared
    wrong_by = (rewards - utility.to(rewards)).where(~utility.isnan(), 1.0)
    return rewards - gamma * wrong_by * squared
