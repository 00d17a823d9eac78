"""Division of the work: a model into shards, one a process, and the rows of a batch into shares."""

from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from jaxtyping import Int
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from transformers import PreTrainedModel

from cooper_rl.engines.cpu import BFloat16Linear
from cooper_rl.engines.local.device import resolve_device
from cooper_rl.errors import InputError
from cooper_rl.rollouts import Column


def rank_device(name: str) -> torch.device:
    """The device of this process. Raises InputError as `resolve_device` does, and for Apple's MPS."""
    device = resolve_device(name)
    if device.type == "mps":
        raise InputError("device: FSDP2 runs on CUDA and on CPUs; set device: cpu")
    return torch.device("cuda", torch.cuda.current_device()) if device.type == "cuda" else device


def shard(model: PreTrainedModel, device: torch.device, bfloat16: bool) -> Callable[..., Any]:
    """Shard a whole model over all processes, and move it to `device` layer by layer. Every process calls this.

    Returns a function that runs another one as a pass through the model: FSDP2 gathers weights when a pass begins, and
    by itself it sees only calls of `forward`. The gradients of the processes are added, not averaged, because the
    weights of a loss are shares of the whole step. With `bfloat16`, products and gathered weights are in bfloat16, and
    shards, gradients and their sum in float32. Raises InputError for a model that FSDP2 does not take.
    """
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    how: dict[str, Any] = {"mesh": mesh, **({"mp_policy": policy} if bfloat16 and device.type == "cuda" else {})}
    try:
        for module in [*_layers(model), model]:
            fully_shard(module, **how)
    except ValueError as error:
        raise InputError(
            f"{model.config.name_or_path}: FSDP2 does not take this {type(model).__name__}: {error}"
        ) from error
    for module in model.modules():
        if isinstance(module, BFloat16Linear):
            module.keeps_packed = False
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            if device.type == "cpu":
                module.set_force_sum_reduction_for_comms(True)  # gloo has no PREMUL_SUM
    inside: Any = MethodType(lambda _, function, *arguments: function(*arguments), model)
    model.inside = inside  # pyright: ignore[reportAttributeAccessIssue]
    register_fsdp_forward_method(model, "inside")
    return model.inside  # pyright: ignore[reportReturnType]


def _layers(model: PreTrainedModel) -> list[nn.Module]:
    """The blocks, which transformers never divides between devices."""
    names = set(model._no_split_modules or ())
    return [module for module in model.modules() if type(module).__name__ in names]


def shares(costs: Sequence[int], groups: Sequence[Sequence[int]], ranks: int) -> list[list[int]]:
    """The rows of each of `ranks` processes, in ascending order; row i costs `costs[i]` (tokens).

    A group's rows share a prefix that is computed once, so a group stays whole, unless it costs more than an even
    share: it is then cut. The most expensive piece comes first; each goes to the process with the least work so far.
    """
    even = sum(costs) / ranks
    pieces = [piece for group in groups for piece in _cut(group, costs, even)]
    loads, taken = [0] * ranks, [[] for _ in range(ranks)]
    for piece in sorted(pieces, key=lambda piece: (-sum(costs[row] for row in piece), piece[0])):
        rank = loads.index(min(loads))
        loads[rank] += sum(costs[row] for row in piece)
        taken[rank].extend(piece)
    return [sorted(rows) for rows in taken]


def _cut(group: Sequence[int], costs: Sequence[int], most: float) -> list[list[int]]:
    """The group's rows in pieces that cost at most `most`, or consist of one row."""
    pieces: list[list[int]] = []
    cost = 0
    for row in group:
        if pieces and cost + costs[row] <= most:
            pieces[-1].append(row)
            cost += costs[row]
        else:
            pieces.append([row])
            cost = costs[row]
    return pieces


def same_prompt(token_ids: Column, lengths: Int[np.ndarray, " B"]) -> list[list[int]]:
    """Rows with the same tokens before their last `lengths[i]`."""
    groups: dict[bytes, list[int]] = {}
    for i, row in enumerate(token_ids):
        groups.setdefault(row[: len(row) - lengths[i]].tobytes(), []).append(i)
    return list(groups.values())
