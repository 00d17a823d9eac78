"""IPVRM: an implicit reward model that learns to say, after every token, how the completion will end.

Gao et al. 2026 (arXiv 2604.13197, P, and its code, C, read for this). With V_t = beta * sum_{s <= t} log pi_phi /
pi_old and y = 1 for right, -1 for wrong, the loss of a completion is the mean over t of

    -log sigmoid(y V_t / t - m_y),   m_y = m - y logit(share of right answers in the group, within 1e-6),

weighted by 1 - share (right) or share (wrong), scaled to mean 1 in the group (all 1 if that is 0). In reinforcement
learning pi_old is the policy as it is (`against: policy`). Published: beta 10, m 5, learning rate 2e-6, 16 samples,
the reward model learns first.

The policy's advantage is GRPO(O) + .05 GAE, and GAE = sum_{s >= t} (d_s - mean d) / std V with d_t = V_t - V_{t-1}, the
last token unpaid, then whitened over the step's tokens. The code's third term, a loss on the top-5 candidates of each
token, is left out: it needs the probabilities of tokens that were not sampled. The std is of the step, as in the code.

Silence: as `prime.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from cooper_lab.designs.implicit import ImplicitEngine
from cooper_lab.designs.prime import Prime, Rows, to_go
from cooper_rl.engines import ENGINES
from cooper_rl.policy.advantages import ADVANTAGES, EPS, GRPO, AdvantageConfig

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


@ENGINES.register
class IPVRMEngine(ImplicitEngine):
    """An implicit reward model with the loss of IPVRM."""

    kind: Literal["ipvrm"] = "ipvrm"  # pyright: ignore[reportIncompatibleVariableOverride]
    beta: float = Field(default=10.0, gt=0)
    """Factor of the log-ratios (nats)."""
    against: Literal["start", "policy"] = "policy"
    """pi_old: the policy as it is, or as it was before the first step."""
    margin: float = Field(default=5.0, ge=0)
    """m, in units of V."""

    def logits(self, ratios_BT: Float[Tensor, "B T"], lengths_B: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
        """V_T / T."""
        return self.beta * ratios_BT.sum(1) / lengths_B.clamp(min=1)

    def terms(self, labels: Sequence[float], prompts: Sequence[bytes]) -> tuple[list[float], list[float]]:
        """Weights and margins, from the share of right completions among those of the same prompt."""
        rows: dict[bytes, list[int]] = {}
        for i, prompt in enumerate(prompts):
            rows.setdefault(prompt, []).append(i)
        weights, margins = [1.0] * len(labels), [self.margin] * len(labels)
        for group in rows.values():
            of_group = group_terms([labels[i] for i in group], self.margin)
            for i, weight, margin in zip(group, *of_group, strict=True):
                weights[i], margins[i] = weight, margin
        return weights, margins

    def outcome_losses(
        self,
        ratios_BT: Float[Tensor, "B T"],
        lengths_B: Float[Tensor, " B"],
        labels_B: Float[Tensor, " B"],
        margins_B: Float[Tensor, " B"],
    ) -> Float[Tensor, " B"]:
        """The mean over each completion's prefixes of softplus(m_y - y V_t / t)."""
        import torch  # noqa: PLC0415 - configuration records do without it
        from torch.nn.functional import softplus  # noqa: PLC0415

        counts_T = torch.arange(1, ratios_BT.shape[1] + 1).to(ratios_BT)
        means_BT = self.beta * ratios_BT.cumsum(1) / counts_T
        losses_BT = softplus(margins_B[:, None] - (2 * labels_B - 1)[:, None] * means_BT)
        inside_BT = counts_T[None] <= lengths_B[:, None]
        return losses_BT.where(inside_BT, 0.0).sum(1) / lengths_B.clamp(min=1)


@ADVANTAGES.register
class IPVRM(Prime):
    """GRPO of the outcome, and the generalised advantages of the values' differences."""

    kind: Literal["ipvrm"] = "ipvrm"  # pyright: ignore[reportIncompatibleVariableOverride]
    outcome: Annotated[AdvantageConfig, ADVANTAGES] = GRPO()
    """The estimator of the advantages of the finished reward, which is the outcome."""
    weight: float = Field(default=0.05, ge=0)
    """Factor of the process advantages."""

    def returns(self, rewards: Rows, sizes: Sequence[int]) -> Rows:
        """The whitened sums to the end of the centred differences of V, by the step's std of V."""
        paid = [np.where(np.arange(len(row)) < len(row) - 1, row, 0.0) for row in rewards]
        differences, values = np.concatenate(paid), np.concatenate([np.cumsum(row) for row in paid])
        spread = max(float(values.std()), EPS)
        sums = [to_go((row - differences.mean()) / spread) for row in paid]
        every = np.concatenate(sums)
        return [(row - every.mean()) / (every.std() + EPS) for row in sums]


def group_terms(labels: Sequence[float], margin: float) -> tuple[list[float], list[float]]:
    """The weights and margins m_y of a group's completions, labelled 1 (right) or 0. One that is alone has no share of
    others: 1 and m."""
    if len(labels) == 1:
        return [1.0], [margin]
    share = sum(labels) / len(labels)
    bounded = min(max(share, 1e-6), 1 - 1e-6)
    boundary = math.log(bounded / (1 - bounded))
    raw = [1 - share if label > 0.5 else share for label in labels]
    scale = len(raw) / sum(raw) if sum(raw) > 1e-8 else 0.0
    weights = [value * scale if scale else 1.0 for value in raw]
    return weights, [margin - boundary if label > 0.5 else margin + boundary for label in labels]
