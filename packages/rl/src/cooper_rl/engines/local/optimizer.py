"""The optimizer of a learner: the schedule of its learning rate, and AdamW's moments off the GPU and on disk."""

import math
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.optim import Optimizer

from cooper_base.errors import InputError
from cooper_rl.engines.local import adapter


def learning_rate_factor(step: int, warmup_steps: int, total_steps: int, schedule: str) -> float:
    """The share of the peak learning rate at optimizer step `step`, counted from 0.

    The warm-up is (step + 1) / warmup_steps, so the first step already learns. Then the factor stays, or falls to 0
    over the rest of `total_steps`, in a line or along half a cosine (Loshchilov & Hutter 2017, arXiv 1608.03983,
    without restarts).
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if schedule == "constant":
        return 1.0
    progress = min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps))
    return 1.0 - progress if schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * progress))


def offload_moments(optimizer: Optimizer) -> None:
    """Move AdamW's running means into the machine's memory. For a sharded model these are the rows of this process, as
    plain tensors."""
    for state in optimizer.state.values():
        for key, value in state.items():
            if value.ndim:  # the count of steps stays
                rows = adapter.own(value)
                # From pinned memory a copy to a GPU is several times faster.
                state[key] = torch.empty_like(rows, device="cpu", pin_memory=rows.is_cuda).copy_(rows)


def fetch_moments(optimizer: Optimizer) -> None:
    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            if value.ndim:
                rows = adapter.own(value).to(adapter.own(parameter).device, non_blocking=True)
                state[key] = adapter.like(parameter, rows)


def restore_moments(paths: list[Path], model: nn.Module, optimizer: Optimizer) -> None:
    parameters = dict(model.named_parameters())
    optimizer.state.clear()
    with ExitStack() as stack:
        parts = [stack.enter_context(safe_open(path, "pt")) for path in paths]
        for full_name in sorted({name for part in parts for name in part.keys()}):  # noqa: SIM118 - not a mapping
            name, _, key = full_name.rpartition(":")
            slices = [part.get_slice(full_name) for part in parts if full_name in part.keys()]  # noqa: SIM118
            shapes = [tuple(piece.get_shape()) for piece in slices]
            shape = (sum(rows for rows, *_ in shapes), *shapes[0][1:]) if shapes[0] else ()
            parameter = parameters.get(name)
            if parameter is None or (shape and shape != tuple(parameter.shape)):
                raise InputError(f"{paths[0]}: optimizer state for {name!r} {shape} does not fit this model")
            if not parameter.requires_grad:
                continue  # the checkpoint was written when this weight was trained
            # A number is AdamW's count of steps, the same in every part.
            values = (_rows(slices, adapter.own_rows(parameter)) if shape else slices[0][...]).to(parameter.device)
            optimizer.state[parameter][key] = adapter.like(parameter, values) if shape else values


def _rows(slices: list[Any], wanted: slice) -> Tensor:
    """Some rows of a tensor whose rows stand one after the other in these slices; nothing else is read."""
    pieces, start = [], 0
    for piece in slices:
        size = piece.get_shape()[0]
        first, last = max(0, wanted.start - start), min(size, wanted.stop - start)
        if first < last:
            pieces.append(piece[first:last])
        start += size
    return torch.cat(pieces) if pieces else slices[0][:0]
