"""Linear layers under bfloat16 autocast on processors that multiply in bfloat16.

Autocast converts the weights in every pass. Here they are converted and brought into oneDNN's own layout once, and
again after they have changed: one packed copy for the forward pass, and one of the transpose for the gradient of the
input, made at the first pass that needs it. Each takes 2 bytes a weight. Products add up in float32 and round their
result to bfloat16, as autocast's do; the gradient of the weight is float32 from there on.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from cooper_rl.engines.kernels.onednn import WORTHWHILE, cpu_info, has_onednn, packed, product
from cooper_rl.engines.kernels.weight_versions import Version, version


@dataclass
class _Packed:
    """The packed copies of one version of a weight."""

    version: Version
    weight: Tensor
    transpose: Tensor | None = None


_packed: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
"""weight -> _Packed. It is not kept in the layers, because a copy or a file of a layer has no use for it."""


class BFloat16Linear(nn.Linear):
    """An `nn.Linear` that multiplies by packed weights under bfloat16 autocast on the CPU, if there is enough work."""

    keeps_packed: bool = True
    """Off where the weight changes unnoticed: FSDP2 gathers it anew for every pass, in the same memory."""

    def forward(self, input: Tensor) -> Tensor:
        weight, bias = self.weight, self.bias
        if not self._takes(input):
            return F.linear(input, weight, bias)
        rows = input.reshape(-1, input.shape[-1])
        if torch.is_grad_enabled() and (rows.requires_grad or weight.requires_grad):
            output: Any = _Linear.apply(rows, weight, bias)
        else:
            output = _forward(rows.bfloat16(), weight, bias)
        return output.view(*input.shape[:-1], weight.shape[0])

    def _takes(self, input: Tensor) -> bool:
        weight = self.weight
        return (
            self.keeps_packed
            and input.device.type == "cpu"
            and torch.is_autocast_enabled("cpu")
            and torch.get_autocast_dtype("cpu") == torch.bfloat16
            and weight.dtype == torch.float32
            and input.dtype in (torch.float32, torch.bfloat16)
            and input.numel() * weight.shape[0] >= WORTHWHILE
            and not weight.is_inference()
        )


@cache
def has_bfloat16() -> bool:
    """Whether the processor multiplies in bfloat16 (AVX-512-BF16 or AMX), and PyTorch's oneDNN can use it."""
    flags = next((line for line in cpu_info().splitlines() if line.startswith("flags")), "")
    return has_onednn() and not {"avx512_bf16", "amx_bf16"}.isdisjoint(flags.split())


class _Linear(torch.autograd.Function):
    """rows @ weight.T + bias with all three products of forward and backward in bfloat16."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        half = rows.bfloat16()
        ctx.save_for_backward(half, weight)
        return _forward(half, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        half, weight = ctx.saved_tensors
        gradient = gradients[0].bfloat16()
        wants_rows, wants_weight, wants_bias = ctx.needs_input_grad
        return (
            product(gradient, _packed_transpose(weight)) if wants_rows else None,
            (gradient.t() @ half).float() if wants_weight else None,
            gradient.sum(0, dtype=torch.float32) if wants_bias else None,
        )


def _forward(half: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return product(half, _of(weight).weight, None if bias is None else bias.detach().bfloat16())


def _of(weight: Tensor) -> _Packed:
    found: _Packed | None = _packed.get(weight)
    if found is None or found.version != version(weight):
        _packed[weight] = found = _Packed(version(weight), packed(weight.detach().bfloat16()))
    return found


def _packed_transpose(weight: Tensor) -> Tensor:
    found = _of(weight)
    if found.transpose is None:
        found.transpose = packed(weight.detach().bfloat16().t().contiguous())
    return found.transpose
