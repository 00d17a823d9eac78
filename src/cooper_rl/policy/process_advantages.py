"""Advantages of tokens from the rewards of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from cooper_rl.policy.process import ProcessCredit


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
    found: list[Float[np.ndarray, " T"]] = []
    start = 0
    for size in sizes:
        group = range(start, start + size)
        found += _of_group([steps[i] for i in group], [lengths[i] for i in group], config)
        start += size
    return found


def _of_group(steps: Sequence[Steps], lengths: Sequence[int], config: ProcessCredit) -> list[Float[np.ndarray, " T"]]:
    empty = [np.zeros(length) for length in lengths]
    if len(steps) < 2 or not all(bool(one.rewards.isfinite().all()) for one in steps):
        return empty
    credits = [config.of(one.rewards.double()).numpy() if len(one.spans) else np.zeros(0) for one in steps]
    tokens = [np.array([end - first for first, end in one.spans], float) for one in steps]
    credit_of_all, tokens_of_all = sum(map(np.sum, credits)), sum(map(np.sum, tokens))
    for row, one, credit, counts in zip(empty, steps, credits, tokens, strict=True):
        others = tokens_of_all - counts.sum()
        rate = (credit_of_all - credit.sum()) / others if others else 0.0
        to_go = np.cumsum((credit - rate * counts)[::-1])[::-1]
        for (first, end), advantage in zip(one.spans, to_go, strict=True):
            row[first:end] = advantage
    return empty


def process_metrics(steps: Sequence[Steps]) -> dict[str, float]:
    """`process/steps`: steps per completion. `process/step_reward`: their mean. `process/lowest_step`: the mean over
    completions of their lowest. NaN without any step."""
    rewards = [one.rewards for one in steps if len(one.rewards)]
    everything = torch.cat(rewards) if rewards else torch.tensor([float("nan")])
    lowest = torch.stack([row.min() for row in rewards]) if rewards else everything
    return {
        "process/steps": sum(len(one.spans) for one in steps) / max(1, len(steps)),
        "process/step_reward": everything.mean().item(),
        "process/lowest_step": lowest.mean().item(),
    }
