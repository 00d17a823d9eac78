"""Process credit: the rewards of a completion's steps become credit, and credit becomes advantages of tokens."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from cooper_rl.config.base import Config, Kinds

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

PROCESS_CREDITS = Kinds("process credit", __name__, ["credit", "model", "separator", "outcome_weight"])
"""The kinds of `algorithm.process`."""


class ProcessCredit(Config):
    """Settings that all kinds share. Each kind implements `credit`."""

    model: str = "main"
    """The reward model's name in `reward_models`. It reads a completion up to the end of each step, so it must have
    been trained to judge unfinished solutions. A VerifyRM has not: it rejects what has no final answer yet."""
    separator: str = Field(default="\n\n", min_length=1)
    """The text between two steps. Blank steps are left out, and tokens of separators get no process advantage."""
    outcome_weight: float = Field(default=1.0, ge=0)
    """Factor of the advantages of the finished reward, to which those of the process are added. With 0 only the
    process counts."""

    @abstractmethod
    def credit(self, rewards: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        """The credit of each of a completion's S steps, from their rewards in [-1, 1] (float64)."""


ProcessConfig = Annotated[ProcessCredit, PROCESS_CREDITS]


@PROCESS_CREDITS.register
class MinForm(ProcessCredit):
    """softmax(-r / temperature)_k r_k: the sum over the steps is close to the smallest reward.

    PURE (Cheng et al. 2025, arXiv 2504.15275). Further good steps add nothing, so a solution gains nothing by having
    more of them. At high temperatures it is the mean.
    """

    kind: Literal["min_form"] = "min_form"
    temperature: float = Field(default=0.1, gt=0)
    """How little the worst step stands out, in units of the reward."""

    def credit(self, rewards: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        return (-rewards / self.temperature).softmax(dim=0) * rewards


@dataclass(frozen=True)
class Steps:
    """The steps of one completion: step k has the tokens `spans[k][0]` up to, but not including, `spans[k][1]`.

    Spans are in order and do not overlap. `rewards` holds a reward in [-1, 1] for each step.
    """

    spans: Sequence[tuple[int, int]]
    rewards: Float[Tensor, " S"]


def process_advantages(
    steps: Sequence[Steps], sizes: Sequence[int], lengths: Sequence[int], config: ProcessCredit
) -> list[Float[np.ndarray, " T"]]:
    """For each completion, the advantage of each of its tokens. `sizes` and `lengths` are those of groups and rows.

    With credit c_k and n_k tokens in step k, a token of step k has the sum of c_m - b n_m over m >= k, where b is the
    credit per token of the other completions of the group. This baseline is that of PURE's code (arXiv 2504.15275),
    whose authors found that one per step makes the policy avoid separators. Tokens outside all steps have 0, and so has
    a completion that is alone in its group, and a group with a reward that is not finite.
    """
    found = [np.zeros(length) for length in lengths]
    rows = iter(zip(found, steps, strict=True))
    for group in [list(islice(rows, size)) for size in sizes]:
        if len(group) < 2 or not all(bool(one.rewards.isfinite().all()) for _, one in group):
            continue
        credits = [config.credit(one.rewards.double()).numpy() if len(one.spans) else np.zeros(0) for _, one in group]
        tokens = [np.array([end - first for first, end in one.spans], float) for _, one in group]
        credit_of_all, tokens_of_all = sum(map(np.sum, credits)), sum(map(np.sum, tokens))
        for (row, one), credit, counts in zip(group, credits, tokens, strict=True):
            others = tokens_of_all - counts.sum()
            rate = (credit_of_all - credit.sum()) / others if others else 0.0
            to_go = np.cumsum((credit - rate * counts)[::-1])[::-1]
            for (first, end), advantage in zip(one.spans, to_go, strict=True):
                row[first:end] = advantage
    return found


def process_metrics(steps: Sequence[Steps]) -> dict[str, float]:
    """`process/steps`: steps per completion. `process/step_reward`: their mean. `process/lowest_step`: the mean over
    completions of their lowest. NaN without any step."""
    import torch  # noqa: PLC0415 - configuration records do without it

    rewards = [one.rewards for one in steps if len(one.rewards)]
    everything = torch.cat(rewards) if rewards else torch.tensor([float("nan")])
    lowest = torch.stack([row.min() for row in rewards]) if rewards else everything
    return {
        "process/steps": sum(len(one.spans) for one in steps) / max(1, len(steps)),
        "process/step_reward": everything.mean().item(),
        "process/lowest_step": lowest.mean().item(),
    }
