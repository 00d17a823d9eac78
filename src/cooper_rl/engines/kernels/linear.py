"""Linear layers on oneDNN's float32 kernels, where those are faster.

On x86 PyTorch computes float32 matrix products with MKL, which leaves AVX-512 unused on AMD processors. oneDNN, which
PyTorch includes for its compiler, uses it. It is twice as fast, forward and backward, with the same rounding error
(measured in docs/performance.md).
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cooper_rl.engines.kernels.bfloat16_linear import BFloat16Linear, has_bfloat16
from cooper_rl.engines.kernels.onednn import WORTHWHILE, cpu_info, has_onednn, packed, product

Kernels = Literal["auto", "torch", "onednn"]


class FastLinear(BFloat16Linear):
    """An `nn.Linear` that uses oneDNN where that can pay off: float32 on the CPU and enough work.

    Under autocast it is a `BFloat16Linear` on processors that multiply in bfloat16, and PyTorch's own on others.
    """

    def forward(self, input: Tensor) -> Tensor:
        weight, bias = self.weight, self.bias
        work = input.numel() * weight.shape[0]
        if work < WORTHWHILE or input.device.type != "cpu":
            return F.linear(input, weight, bias)
        if torch.is_autocast_enabled("cpu"):
            return super().forward(input) if has_bfloat16() else F.linear(input, weight, bias)
        if {input.dtype, weight.dtype} != {torch.float32}:
            return F.linear(input, weight, bias)
        rows = input.reshape(-1, input.shape[-1])
        learning = torch.is_grad_enabled() and (rows.requires_grad or weight.requires_grad)
        output = _Linear.apply(rows, weight, bias) if learning else product(rows, weight, bias)
        return output.view(*input.shape[:-1], weight.shape[0])


def use_fast_linear(model: nn.Module, kernels: Kernels = "auto") -> None:
    """Make every plain `nn.Linear` of a model a `FastLinear`, in place; its parameters stay the same objects.

    `auto` does so only on processors for which it was measured to be faster; on others that multiply in bfloat16 they
    become a `BFloat16Linear`. Raises RuntimeError if `onednn` is set but this PyTorch does not have it.
    """
    if kernels == "torch":
        return
    if kernels == "onednn" and not has_onednn():
        raise RuntimeError("this PyTorch has no oneDNN linear; set cpu_kernels: torch")
    if kernels == "onednn" or onednn_is_faster():
        faster: type[nn.Linear] = FastLinear
    elif has_bfloat16():
        faster = BFloat16Linear
    else:
        return
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = faster


class PackedLinear:
    """Several linear layers on the same input as one product, for inference. It does not follow later weight changes.

    It computes in `dtype`, which is also that of the output. If the layers are `FastLinear`, or a `BFloat16Linear`
    computed in bfloat16, the weights are stored in oneDNN's own layout.
    """

    def __init__(self, layers: Sequence[nn.Linear], dtype: torch.dtype) -> None:
        weights = [layer.weight.detach().to(dtype) for layer in layers]
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        self._dtype = dtype
        self._work = weight.numel()
        self._plain: Tensor | None = weight
        biases = [layer.bias.detach() for layer in layers if layer.bias is not None]
        self._bias = torch.cat(biases).to(dtype) if biases else None
        self._packed = None
        faster = BFloat16Linear if dtype == torch.bfloat16 else FastLinear
        if all(isinstance(layer, faster) for layer in layers):
            self._packed = packed(weight.contiguous())
            if self._work >= WORTHWHILE:  # always worthwhile: the other copy is not needed
                self._plain = None

    def __call__(self, rows: Tensor) -> Tensor:
        """[N, in] of any type -> [N, out]."""
        rows = rows.to(self._dtype)
        if self._plain is None or (self._packed is not None and len(rows) * self._work >= WORTHWHILE):
            assert self._packed is not None
            return product(rows, self._packed, self._bias)
        return F.linear(rows, self._plain, self._bias)


@cache
def onednn_is_faster() -> bool:
    """Whether the processor is an AMD with AVX-512."""
    return has_onednn() and torch.backends.cpu.get_cpu_capability() == "AVX512" and "AuthenticAMD" in cpu_info()


class _Linear(torch.autograd.Function):
    """rows @ weight.T + bias with all three products of forward and backward in oneDNN."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return product(rows, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        rows, weight = ctx.saved_tensors
        (gradient,) = gradients
        wants_rows, wants_weight, wants_bias = ctx.needs_input_grad
        return (
            product(gradient, weight.t()) if wants_rows else None,
            product(gradient.t(), rows.t()) if wants_weight else None,
            gradient.sum(0) if wants_bias else None,
        )
