"""Attention over packed rows (see `packing.py`), for any transformers model whose attention can be replaced."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from cooper_rl.engines.kernels.bfloat16_linear import has_bfloat16
from cooper_rl.engines.kernels.packing import AttentionLayout, PackedRows, pack_rows

_NAME = "cooper_packed_sdpa"
_TOLERANCE = 1e-3


def enable_packing(model: PreTrainedModel) -> bool:
    """Make `packed_hidden_states` usable on a model. If its result would be different, return False and change nothing.

    It works for causal models with full attention that use PyTorch's SDPA through transformers' attention interface.
    Differences that the config does not show (a recurrent state, unusual positions) are found with two short rows.
    """
    config: Any = model.config
    takes_keywords = getattr(model, "_supports_attention_backend", False)
    windows = getattr(config, "sliding_window", None) is not None and getattr(config, "use_sliding_window", True)
    layer_kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if not takes_keywords or windows or layer_kinds != {"full_attention"} or config._attn_implementation != "sdpa":
        return False
    AttentionInterface.register(_NAME, _attention)
    AttentionMaskInterface.register(_NAME, sdpa_mask)
    model.set_attn_implementation(_NAME)
    if not _agrees(model):
        model.set_attn_implementation("sdpa")
        return False
    return True


def packed_hidden_states(model: PreTrainedModel, packed: PackedRows) -> Float[Tensor, "T H"]:
    """Last hidden states of the packed sequence."""
    # Made once for all layers, in the type of the attention, because autograd keeps the inputs of each layer.
    kind = model.device.type
    halved = torch.is_autocast_enabled(kind) and not _stays_float32(model.device)
    dtype = torch.get_autocast_dtype(kind) if halved else model.dtype
    seen = packed.layout.suffix_sees
    # Without a mask transformers makes one of T x T. It passes on a mask of four dimensions, which is not read here.
    no_mask = torch.ones(1, 1, 1, 1, device=packed.token_ids.device)
    return model.base_model(
        packed.token_ids,
        attention_mask=no_mask,
        position_ids=packed.position_ids,
        use_cache=False,
        packed_layout=packed.layout,
        packed_bias=torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, -torch.inf),
    ).last_hidden_state[0]


def _attention(
    module: nn.Module,
    query: Float[Tensor, "B heads T size"],
    key: Float[Tensor, "B kv_heads T size"],
    value: Float[Tensor, "B kv_heads T size"],
    attention_mask: Tensor | None,
    packed_layout: AttentionLayout | None = None,
    packed_bias: Float[Tensor, "S 1 C P+C"] | None = None,
    **settings: Any,
) -> tuple[Float[Tensor, "B T heads size"], None]:
    if packed_layout is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **settings)
    if not (torch.is_autocast_enabled("cpu") and _stays_float32(query.device)):
        return _packed_attention(query, key, value, packed_layout, packed_bias, settings.get("scaling"))
    with torch.autocast("cpu", enabled=False):
        query, key, value = query.float(), key.float(), value.float()
        return _packed_attention(query, key, value, packed_layout, packed_bias, settings.get("scaling"))


def _stays_float32(device: torch.device) -> bool:
    """Whether attention is float32 under autocast too: for short rows PyTorch's bfloat16 kernels on a CPU are slower.

    The rotary embedding has made queries and keys float32 already.
    """
    return device.type == "cpu" and has_bfloat16()


def _packed_attention(
    query: Float[Tensor, "B heads T size"],
    key: Float[Tensor, "B kv_heads T size"],
    value: Float[Tensor, "B kv_heads T size"],
    layout: AttentionLayout,
    bias: Float[Tensor, "S 1 C P+C"] | None,
    scale: float | None,
) -> tuple[Float[Tensor, "B T heads size"], None]:
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
    attended = [_attend(q, k, v, layout.prefixes, layout.prefixes, is_causal=True, scale=scale)]
    if len(layout.suffixes):
        attended.append(_attend(q, k, v, layout.suffixes, layout.suffix_keys, attn_mask=bias, scale=scale))
    tokens = torch.cat([x.flatten(0, 1) for x in attended]).index_select(0, layout.origin)
    return tokens[None], None


def _attend(
    q: Float[Tensor, "T heads size"],
    k: Float[Tensor, "T kv_heads size"],
    v: Float[Tensor, "T kv_heads size"],
    queries: Int[Tensor, "N C"],
    keys: Int[Tensor, "N L"],
    **how: Any,
) -> Float[Tensor, "N C heads size"]:
    """Attention of the tokens at the places `queries` to the tokens at the places `keys`."""
    rows_k, rows_v = _take(k, keys).transpose(1, 2), _take(v, keys).transpose(1, 2)
    rows_q = _take(q, queries).unflatten(2, (k.shape[1], -1))
    # The query heads that share a key head take turns, so neither keys nor bias are repeated.
    turns = [
        F.scaled_dot_product_attention(turn.transpose(1, 2), rows_k, rows_v, **how).transpose(1, 2)
        for turn in rows_q.unbind(3)
    ]
    return torch.stack(turns, dim=3).flatten(2, 3)


def _take(x: Float[Tensor, "T heads size"], places: Int[Tensor, "N L"]) -> Float[Tensor, "N L heads size"]:
    # As an embedding, because of all ways to gather rows it has the fastest backward pass.
    return F.embedding(places, x.flatten(1)).unflatten(-1, x.shape[1:])


@torch.no_grad()
def _agrees(model: PreTrainedModel) -> bool:
    rows = [np.array([0, 1, 2, 3, 4, 5]), np.array([0, 1, 2, 4, 3])]
    packed = pack_rows(rows, model.device)
    hidden = packed_hidden_states(model, packed)
    for row, places in zip(rows, packed.places, strict=True):
        plain = model.base_model(torch.from_numpy(row)[None].to(model.device), use_cache=False).last_hidden_state[0]
        if not torch.allclose(hidden[places[: len(row)]], plain, rtol=_TOLERANCE, atol=_TOLERANCE):
            return False
    return True
