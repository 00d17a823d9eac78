"""Linear layers on oneDNN's kernels, where those are faster than what PyTorch takes by itself.

PyTorch's own MKL leaves AVX-512 unused on AMD processors (benchmarks/speed/README.md), and its bfloat16 autocast
converts the weights in every pass: here packed copies of 2 bytes a weight, also of the transpose, are kept until the
weights change.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.weak import WeakTensorKeyDictionary

_CPUINFO = Path("/proc/cpuinfo")
_CPU_INFO = _CPUINFO.read_text(encoding="utf-8") if _CPUINFO.exists() else ""  # there is none on macOS
_WORTHWHILE = 1_000_000  # multiply-adds below which oneDNN's overhead of ten microseconds is more than it saves

# Kernels are chosen by the processor and not by timing, because equal runs must compute equal results.


@cache
def has_onednn() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@cache
def has_bfloat16() -> bool:
    """Whether the processor multiplies in bfloat16 (AVX-512-BF16 or AMX), and PyTorch's oneDNN can use it."""
    return has_onednn() and ("avx512_bf16" in _CPU_INFO or "amx_bf16" in _CPU_INFO)


@cache
def bfloat16_pays() -> bool:
    """Whether bfloat16 products were measured to be faster than float32 here: on AMD, or with AMX.

    Intel's AVX-512-BF16 without AMX multiplies at half of float32's rate (benchmarks/speed/README.md).
    """
    return has_bfloat16() and ("AuthenticAMD" in _CPU_INFO or "amx_bf16" in _CPU_INFO)


def product(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """rows [N, in] times the transpose of weight [out, in], which may be packed. Either may be transposed in memory."""
    return torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")


def packed(weight: Tensor) -> Tensor:
    """A copy of a contiguous weight [out, in] in oneDNN's own layout, which only `product` reads."""
    return torch.ops.mkldnn._reorder_linear_weight(weight)


def use_fast_linear(model: nn.Module, layer: type[nn.Linear] | None = None) -> None:
    """Make every plain `nn.Linear` of a model a `layer`, in place; its parameters stay the same objects.

    By default, `layer` is what was measured to be fastest on this processor: a `FastLinear` on AMD with AVX-512, a
    `BFloat16Linear` on others that multiply in bfloat16, elsewhere PyTorch's own.
    """
    layer = layer or _fastest()
    for module in model.modules():
        if type(module) in (nn.Linear, BFloat16Linear, FastLinear):
            module.__class__ = layer


def _fastest() -> type[nn.Linear]:
    amd_with_avx512 = torch.backends.cpu.get_cpu_capability() == "AVX512" and "AuthenticAMD" in _CPU_INFO
    if has_onednn() and amd_with_avx512:
        return FastLinear
    return BFloat16Linear if has_bfloat16() else nn.Linear


class BFloat16Linear(nn.Linear):
    """An `nn.Linear` that multiplies by packed weights under bfloat16 autocast on the CPU, if there is enough work."""

    keeps_packed: bool = True
    """False for weights that change unnoticed: FSDP2 gathers them for every pass into the same memory."""

    def forward(self, input: Tensor) -> Tensor:
        weight, bias = self.weight, self.bias
        if not (
            self.keeps_packed
            and input.device.type == "cpu"
            and torch.is_autocast_enabled("cpu")
            and torch.get_autocast_dtype("cpu") == torch.bfloat16
            and weight.dtype == torch.float32
            and input.dtype in (torch.float32, torch.bfloat16)
            and input.numel() * weight.shape[0] >= _WORTHWHILE
            and not weight.is_inference()
        ):
            return F.linear(input, weight, bias)
        return _linear(input.bfloat16(), weight, bias)


class FastLinear(BFloat16Linear):
    """An `nn.Linear` that uses oneDNN for enough float32 work on the CPU, and under autocast is a `BFloat16Linear`."""

    def forward(self, input: Tensor) -> Tensor:
        weight, bias = self.weight, self.bias
        if input.numel() * weight.shape[0] < _WORTHWHILE or input.device.type != "cpu":
            return F.linear(input, weight, bias)
        if torch.is_autocast_enabled("cpu"):
            return super().forward(input) if has_bfloat16() else F.linear(input, weight, bias)
        if {input.dtype, weight.dtype} != {torch.float32}:
            return F.linear(input, weight, bias)
        return _linear(input, weight, bias)


class PackedLinear:
    """Linear layers on the same input as one product in `dtype`; it does not follow later changes of their weights."""

    def __init__(self, layers: Sequence[nn.Linear], dtype: torch.dtype) -> None:
        weights = [layer.weight.detach().to(dtype) for layer in layers]
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        biases = [layer.bias.detach() for layer in layers if layer.bias is not None]
        self._bias = torch.cat(biases).to(dtype) if biases else None
        self._dtype, self._work = dtype, weight.numel()
        kind, can_multiply = (BFloat16Linear, has_bfloat16()) if dtype == torch.bfloat16 else (FastLinear, True)
        faster = can_multiply and all(isinstance(layer, kind) for layer in layers)
        self._packed = packed(weight.contiguous()) if faster else None
        # One row is enough work for the packed copy of a large weight, so that the other copy is not needed.
        self._plain = None if self._packed is not None and self._work >= _WORTHWHILE else weight

    def __call__(self, rows: Tensor) -> Tensor:
        rows = rows.to(self._dtype)
        if self._packed is not None and (self._plain is None or len(rows) * self._work >= _WORTHWHILE):
            return product(rows, self._packed, self._bias)
        return F.linear(rows, self._plain, self._bias)  # pyright: ignore[reportArgumentType] - one of the two is there


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    rows = input.reshape(-1, input.shape[-1])
    learns = torch.is_grad_enabled() and (rows.requires_grad or weight.requires_grad)
    compute: Any = _Product.apply if learns else _product
    return compute(rows, weight, bias).view(*input.shape[:-1], weight.shape[0])


def _product(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """rows @ weight.T + bias in the type of the rows, float32 or bfloat16; the others are float32."""
    if rows.dtype == torch.float32:
        return product(rows, weight, bias)
    return product(rows, _packed_copy(weight), None if bias is None else bias.detach().bfloat16())


class _Product(torch.autograd.Function):
    """`_product` with all three products of forward and backward in the type of the rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weight)
        return _product(rows, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        rows, weight = ctx.saved_tensors
        gradient, half = gradients[0].to(rows.dtype), rows.dtype == torch.bfloat16
        wants_rows, wants_weight, wants_bias = ctx.needs_input_grad
        of_rows = of_weight = None
        if wants_rows:
            of_rows = product(gradient, _packed_copy(weight, transposed=True) if half else weight.t())
        if wants_weight:
            of_weight = (gradient.t() @ rows).float() if half else product(gradient.t(), rows.t())
        return of_rows, of_weight, gradient.sum(0, dtype=torch.float32) if wants_bias else None


_copies: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
"""For each weight its version and its packed bfloat16 copies. They are not attributes of the layers, because a copy or
a saved file of a layer must not hold them."""


def _packed_copy(weight: Tensor, transposed: bool = False) -> Tensor:
    known: Any = _copies.get(weight)
    if known is None or known[0] != version(weight):
        _copies[weight] = known = (version(weight), {})
    copies: dict[bool, Tensor] = known[1]
    if transposed not in copies:
        half = weight.detach().bfloat16()
        copies[transposed] = packed(half.t().contiguous() if transposed else half)
    return copies[transposed]


def version(weight: Tensor) -> tuple[int, int]:
    """Where a weight lies in memory, and how often it was changed there, fused optimizers included, but not through
    `tensor.data` or a NumPy view. Raises RuntimeError for a tensor of `torch.inference_mode`.
    """
    return weight.data_ptr(), weight._version


def _count_fused_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    for group in optimizer.param_groups:
        if group.get("fused"):
            increment_version(group["params"])


register_optimizer_step_post_hook(_count_fused_step)
