"""A rule that errs: its rewards corrected for known rates, and appeals of refused answers to a second judge.

Learning under a noisy verifier (arXiv 2510.00915, P, four versions). With rho_0 = P(accepted | wrong) and
rho_1 = P(refused | right):

- `noise_corrected` (backward): (r - rho_0) / (1 - rho_0 - rho_1), whose mean is 0 for wrong and 1 for right answers.
  Baselines of a group undo it: under `grpo` the advantages are those of `rule`, to the last bits. It is here as a null.
- `appeals`: a share q of the refused answers is asked again, of the run's reward model; what it accepts is paid as
  right, and all else as by the rule. rho_1 is estimated by (flips / q) / (flips / q + accepted) and recorded; it
  corrects nothing, since under `grpo` it could not. The paper's Algorithm 3 pays rho_1 r.

Silence: no verdict, so there is nothing to correct and nothing to appeal: no opinion.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from cooper_rl import RewardConfig, Scores
from cooper_rl.reward.base import REWARDS

if TYPE_CHECKING:
    from jaxtyping import Bool
    from torch import Tensor

    from cooper_rl import StepContext

PRIOR = 1e-5
"""Added to both counts of the estimate, so that it is defined before the first verdict."""


class _ReadsAnswersAlone(RewardConfig):
    compares_answers: ClassVar[bool] = False


@REWARDS.register
class NoiseCorrected(_ReadsAnswersAlone):
    """The rule's verdict, corrected for its rates of error."""

    kind: Literal["noise_corrected"] = "noise_corrected"
    accepts_wrong: float = Field(default=0.0, ge=0, lt=1)
    """rho_0."""
    refuses_right: float = Field(default=0.0, ge=0, lt=1)
    """rho_1."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.accepts_wrong + self.refuses_right >= 1:
            raise ValueError("accepts_wrong + refuses_right must stay below 1, or the verdict says nothing")
        return self

    def score(self, context: StepContext) -> Scores:
        scale = 1 - self.accepts_wrong - self.refuses_right
        paid = context.correct.like((context.correct.flat.double() - self.accepts_wrong) / scale)
        return Scores(paid, {"rule": context.correct})


@REWARDS.register
class Appeals(_ReadsAnswersAlone):
    """The rule's verdict, with refused answers appealed to the run's reward model."""

    metric_names: ClassVar[tuple[str, ...]] = ("appeals/asked", "appeals/flips", "appeals/refuses_right")
    reads_model: ClassVar[bool] = True
    kind: Literal["appeals"] = "appeals"
    share: float = Field(default=0.5, gt=0, le=1)
    """q: of the refused answers, drawn by a hash of question and answer."""

    def build(self) -> AppealsReward:
        return AppealsReward(self.share)


class AppealsReward:
    """See `Appeals`. The counts of finished steps are its state."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._counts = (0.0, 0.0)
        """Flips and accepted answers of finished steps."""

    def score(self, context: StepContext) -> Scores:
        correct = context.correct
        asked, flipped = self._appealed(context)
        rate = refuses_right(*self._with([context]), self._share)
        paid = correct.flat.double().where(~flipped, 1.0)
        shares = {"asked": asked.float().mean().item(), "flips": flipped.float().mean().item(), "refuses_right": rate}
        parts = {"rule": correct, **context.model_parts}
        return Scores(context.ragged(paid), parts, {f"appeals/{name}": value for name, value in shares.items()})

    def commit(self, contexts: Sequence[StepContext]) -> None:
        self._counts = self._with(contexts)

    def state(self) -> list[float]:
        return list(self._counts)

    def restore(self, state: list[float]) -> None:
        self._counts = (state[0], state[1])

    def _appealed(self, context: StepContext) -> tuple[Bool[Tensor, " B"], Bool[Tensor, " B"]]:
        """Which answers were asked about, and which of these the reward model accepts."""
        import torch  # noqa: PLC0415 - configuration records do without it

        drawn = [
            is_drawn(f"{group.problem.question}\n{answer.text}", self._share)
            for group in context.groups
            for answer in group.answers
        ]
        asked = torch.tensor(drawn, dtype=torch.bool) & (context.correct.flat == 0)
        return asked, asked & (context.logits.flat > 0)

    def _with(self, contexts: Sequence[StepContext]) -> tuple[float, float]:
        flips, accepted = self._counts
        for context in contexts:
            flips += float(self._appealed(context)[1].sum())
            accepted += float((context.correct.flat == 1).sum())
        return flips, accepted


def is_drawn(text: str, share: float) -> bool:
    """Whether a text is among this share of all texts: the same in every run and whatever else is scored."""
    return int.from_bytes(sha256(text.encode()).digest()[:4], "big") < share * 2**32


def refuses_right(flips: float, accepted: float, share: float) -> float:
    """rho_1 from the flips among the appealed share of refused answers, and the accepted ones."""
    right_and_refused = flips / share + PRIOR
    return right_and_refused / (right_and_refused + accepted + PRIOR)
