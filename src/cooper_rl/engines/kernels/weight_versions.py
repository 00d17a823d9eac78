"""Tells whether weights have changed since something was made of them.

PyTorch counts the changes of a tensor in place, except those by fused optimizers, which are counted here. Changes
through `tensor.data` or through a NumPy view leave no trace.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import increment_version
from torch.optim.optimizer import register_optimizer_step_post_hook

Version = tuple[int, int]
"""Where a tensor lies in memory, and how often it was changed there."""


def version(weight: Tensor) -> Version:
    """The version of a weight; it differs after a change. Raises RuntimeError for a tensor of `torch.inference_mode`.

    A version means nothing once its tensor is gone: another tensor may lie in the same memory.
    """
    return weight.data_ptr(), weight._version


def versions(weights: Iterable[Tensor]) -> tuple[Version, ...]:
    """The version of each weight."""
    return tuple(map(version, weights))


def _count_fused_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    for group in optimizer.param_groups:
        if group.get("fused"):
            increment_version(group["params"])


register_optimizer_step_post_hook(_count_fused_step)
