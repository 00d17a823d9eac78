"""Linear layers with a low-rank adapter (peft's), as one matrix: for decoding, which reads weights once a token."""

from typing import Any

import torch
from torch import Tensor, nn


def base_of(layer: nn.Module) -> nn.Module:
    """The layer under the adapter; a layer without one is its own."""
    return getattr(layer, "base_layer", layer)


@torch.no_grad()
def merged_weight(layer: Any) -> Tensor:
    """The weight of an adapted layer with its active adapter added, as a copy."""
    return layer.base_layer.weight + sum(layer.get_delta_weight(name) for name in layer.active_adapters)


def merged(layer: Any) -> nn.Linear:
    """The layer with its active adapter added to the weight, as a copy of its own; a layer without one as it is."""
    base: Any = base_of(layer)
    if base is layer or layer.disable_adapters:
        return base
    plain: Any = type(base)(base.in_features, base.out_features, bias=base.bias is not None, device="meta")
    plain.weight, plain.bias = nn.Parameter(merged_weight(layer), requires_grad=False), base.bias
    return plain
