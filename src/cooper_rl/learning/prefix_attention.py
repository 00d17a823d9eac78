"""Attention over packed rows (`prefix_packing`), for any transformers model that lets its attention be chosen."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from cooper_rl.learning.prefix_packing import AttentionLayout, PackedRows, pack_rows

_NAME = "cooper_packed_sdpa"
_TOLERANCE = 1e-3


def enable_packing(model: PreTrainedModel) -> bool:
    """Make `packed_hidden_states` usable on a model; False, and nothing changed, where it would compute another thing.

    It works for causal models of full attention through transformers' attention interface with PyTorch's SDPA. What
    the config does not tell (a recurrent state, positions of its own) shows on two short rows.
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
    # Without a mask, transformers makes one of T x T; one of four dimensions is left as it is, and not read here.
    no_mask = torch.ones(1, 1, 1, 1, device=packed.token_ids.device)
    return model.base_model(
        packed.token_ids,
        attention_mask=no_mask,
        position_ids=packed.position_ids,
        use_cache=False,
        packed_layout=packed.layout,
    ).last_hidden_state[0]


def _attention(
    module: nn.Module,
    query: Float[Tensor, "B heads T size"],
    key: Float[Tensor, "B kv_heads T size"],
    value: Float[Tensor, "B kv_heads T size"],
    attention_mask: Tensor | None,
    packed_layout: AttentionLayout | None = None,
    **settings: Any,
) -> tuple[Float[Tensor, "B T heads size"], None]:
    if packed_layout is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **settings)
    scale = settings.get("scaling")
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
    layout = packed_layout
    attended = [_causal(_take(q, layout.prefixes), _take(k, layout.prefixes), _take(v, layout.prefixes), scale)]
    if len(layout.suffixes):
        keys, values = _take(k, layout.suffix_keys), _take(v, layout.suffix_keys)
        attended.append(_biased(_take(q, layout.suffixes), keys, values, layout.suffix_bias, scale))
    tokens = torch.cat([x.flatten(0, 1) for x in attended]).index_select(0, layout.origin)
    return tokens[None], None


def _take(x: Float[Tensor, "T heads size"], places: Int[Tensor, "N L"]) -> Float[Tensor, "N L heads size"]:
    # As an embedding, because its backward pass is the fastest of the ways to gather rows.
    return F.embedding(places, x.flatten(1)).unflatten(-1, x.shape[1:])


def _causal(q: Tensor, k: Tensor, v: Tensor, scale: float | None) -> Float[Tensor, "G P heads size"]:
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    repeats = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(repeats, dim=1) if repeats > 1 else x for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale).transpose(1, 2)


def _biased(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, scale: float | None) -> Float[Tensor, "S C heads size"]:
    rows, length, heads, _ = q.shape
    k, v = k.transpose(1, 2), v.transpose(1, 2)
    # The query heads that share a key head become its queries: keys are not repeated.
    repeats = heads // k.shape[1]
    q = q.transpose(1, 2).reshape(rows, k.shape[1], repeats * length, -1)
    bias = bias.to(q.dtype).repeat(1, 1, repeats, 1)
    attended = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale)
    return attended.reshape(rows, heads, length, -1).transpose(1, 2)


@torch.no_grad()
def _agrees(model: PreTrainedModel) -> bool:
    rows = [[0, 1, 2, 3, 4, 5], [0, 1, 2, 4, 3]]
    packed = pack_rows(rows, model.dtype, model.device)
    hidden = packed_hidden_states(model, packed)
    for row, places in zip(rows, packed.places, strict=True):
        plain = model.base_model(torch.tensor([row], device=model.device), use_cache=False).last_hidden_state[0]
        if not torch.allclose(hidden[places[: len(row)]], plain, rtol=_TOLERANCE, atol=_TOLERANCE):
            return False
    return True
