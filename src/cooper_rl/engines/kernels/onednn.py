"""Matrix products by oneDNN, which PyTorch includes for its compiler. It is not a documented interface."""

from functools import cache
from pathlib import Path

import torch
from torch import Tensor

_CPUINFO = Path("/proc/cpuinfo")
WORTHWHILE = 1_000_000
"""Multiply-adds below which oneDNN's overhead of about ten microseconds per call is more than it saves."""


@cache
def has_onednn() -> bool:
    """Whether PyTorch offers oneDNN's linear."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@cache
def cpu_info() -> str:
    """What the system tells about the processors. Empty where it does not, as on macOS.

    Kernels are chosen by it and not by timing, because equal runs must compute equal results.
    """
    return _CPUINFO.read_text(encoding="utf-8") if _CPUINFO.exists() else ""


def product(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """rows [N, in] times the transpose of weight [out, in], which may be packed. Either may be transposed in memory."""
    return torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")


def packed(weight: Tensor) -> Tensor:
    """A copy of a contiguous weight [out, in] in oneDNN's own layout, which only `product` reads."""
    return torch.ops.mkldnn._reorder_linear_weight(weight)
