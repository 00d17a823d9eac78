"""Keeps a model's `CompactDecoder` from one sampling to the next, while no weight changes."""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from transformers import PreTrainedModel

from cooper_rl.engines.kernels.fast_decoder import CompactDecoder
from cooper_rl.engines.kernels.weight_versions import versions


@dataclass
class _Kept:
    made_of: tuple[Any, ...]
    decoder: CompactDecoder


_kept: "WeakKeyDictionary[PreTrainedModel, _Kept]" = WeakKeyDictionary()


def compact_decoder(model: PreTrainedModel, dtype: torch.dtype) -> CompactDecoder:
    """A decoder of the present weights: the model's last one if nothing has changed since, or a new one, which is kept.

    It holds a packed copy of the weights until `drop_decoder`, or as long as the model. Changes are seen as
    `weight_versions` says. Weights of `torch.inference_mode` have no version, so their decoder is not kept.
    """
    if any(parameter.is_inference() for parameter in model.parameters()):
        return CompactDecoder(model, dtype)
    adapters = [module for module in model.modules() if hasattr(module, "base_layer")]
    active = [(bool(one.disable_adapters), tuple(one.active_adapters)) for one in adapters]  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
    made_of = (dtype, versions(model.parameters()), tuple(active))
    kept = _kept.get(model)
    if kept is None or kept.made_of != made_of:
        drop_decoder(model)  # before the new one, so that there are never two copies
        _kept[model] = kept = _Kept(made_of, CompactDecoder(model, dtype))
    return kept.decoder


def drop_decoder(model: PreTrainedModel) -> None:
    """Give up the memory of the decoder, if one is kept."""
    _kept.pop(model, None)
