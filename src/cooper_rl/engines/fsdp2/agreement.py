"""What the processes of a learner tell each other besides weights and gradients: a few numbers at a time."""

import numpy as np
import torch
import torch.distributed as dist
from jaxtyping import Shaped

from cooper_rl.engines.base import Metrics


def largest(number: int, device: torch.device) -> int:
    """The largest of the processes' numbers."""
    return int(_reduced(torch.tensor(number, device=device), dist.ReduceOp.MAX).item())


def all_true(flag: torch.Tensor) -> torch.Tensor:
    """Whether the flag is true in every process."""
    return _reduced(flag.int(), dist.ReduceOp.MIN).bool()


def added(values: Shaped[np.ndarray, " N"], device: torch.device) -> Shaped[np.ndarray, " N"]:
    """The sum of the processes' arrays, which is exact where all but one of them are 0."""
    return _reduced(torch.from_numpy(values).to(device), dist.ReduceOp.SUM).cpu().numpy()


def over_ranks(metrics: Metrics, count: int, device: torch.device) -> Metrics:
    """The metrics of a whole batch, from those of each process's share of `count` rows or tokens.

    `loss` is a sum over the batch, everything else a mean. All processes name the same metrics.
    """
    names = list(metrics)
    sums = np.array([count, *(metrics[name] * (1 if name == "loss" else count) for name in names)], np.float64)
    total, *found = added(sums, device).tolist()
    return {name: value / (1 if name == "loss" else max(1, total)) for name, value in zip(names, found, strict=True)}


def _reduced(tensor: torch.Tensor, how: "dist.ReduceOp.RedOpType") -> torch.Tensor:
    dist.all_reduce(tensor, how)
    return tensor
