"""A model cut into shards, one a process."""

from collections.abc import Callable
from types import MethodType
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from transformers import PreTrainedModel

from cooper_rl.engines.cpu import BFloat16Linear
from cooper_rl.engines.local.device import resolve_device
from cooper_rl.errors import InputError


def rank_device(name: str) -> torch.device:
    """The device of this process. Raises InputError as `resolve_device` does, and for Apple's MPS."""
    device = resolve_device(name)
    if device.type == "mps":
        raise InputError("device: FSDP2 runs on CUDA and on CPUs; set device: cpu")
    return torch.device("cuda", torch.cuda.current_device()) if device.type == "cuda" else device


def shard(model: PreTrainedModel, device: torch.device, bfloat16: bool) -> Callable[..., Any]:
    """Shard a whole model over all processes, each of which calls this, and move it to `device`, layer by layer.

    Returns what runs a function that goes through the model: FSDP2 gathers weights when it sees a pass begin, and
    sees only calls of `forward` by itself. Gradients of the processes are added, not averaged, because the weights of
    a loss are shares of the whole step. With `bfloat16`, products and gathered weights are in bfloat16, and shards,
    gradients and their sum in float32. Raises InputError for a model that FSDP2 does not take.
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
    """The blocks that transformers never divides between devices."""
    names = set(model._no_split_modules or ())
    return [module for module in model.modules() if type(module).__name__ in names]
