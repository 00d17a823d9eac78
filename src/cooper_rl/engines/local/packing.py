"""Ragged rows of tokens as tensors: micro-batches, padded, or packed into one sequence that holds a prefix which
several rows share only once (a causal model computes the same for it in every row), and attention over packed rows.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from cooper_rl.engines.cpu import has_bfloat16


def token_budget_batches(
    lengths: Sequence[int], tokens_per_batch: int, relatives: Sequence[Sequence[int]] | None = None
) -> list[list[int]]:
    """Split rows into batches whose padded size (rows x longest) stays within `tokens_per_batch`.

    Returns row indices, longest rows first, so that a batch that does not fit into memory fails at once. A row longer
    than the budget gets a batch of its own. Rows that are together in `relatives` stay neighbours.
    """
    kin = [sorted(rows, key=lambda i: -lengths[i]) for rows in relatives or [[row] for row in range(len(lengths))]]
    batches: list[list[int]] = []
    longest = 0
    for row in (row for rows in sorted(kin, key=lambda rows: -lengths[rows[0]]) for row in rows):
        if batches and max(longest, lengths[row]) * (len(batches[-1]) + 1) <= tokens_per_batch:
            batches[-1].append(row)
            longest = max(longest, lengths[row])
        else:
            batches.append([row])
            longest = lengths[row]
    return batches


def pad_tokens(
    rows: Sequence[Sequence[int] | Int[np.ndarray, " T"]], pad_id: int, device: torch.device | None = None
) -> Int[Tensor, "B T"]:
    """Rows of token ids, padded on the right."""
    padded = np.full((len(rows), max(map(len, rows), default=0)), pad_id, np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return torch.from_numpy(padded).to(device)


def length_mask(lengths: Int[Tensor, " B"], width: int) -> Bool[Tensor, "B T"]:
    """True at the first `lengths[i]` positions of row i."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]


Row = Int[np.ndarray, " L"]

_LARGEST_FAMILY = 64  # rows, which bounds the search for the best division


@dataclass(frozen=True)
class PackedRows:
    """B rows, the longest of L tokens, as one sequence of T tokens, in which the indices are places.

    Each of the G prefixes attends to itself, each of the S suffixes to its prefix and to itself. Padding points to
    place 0, and no result that is read depends on it.
    """

    token_ids: Int[Tensor, "1 T"]
    position_ids: Int[Tensor, "1 T"]
    places: Int[Tensor, "B L"]  # of every token of every row; 0 after the end of a row
    prefixes: Int[Tensor, "G P"]
    suffixes: Int[Tensor, "S C"]
    suffix_keys: Int[Tensor, "S P+C"]
    suffix_sees: Bool[Tensor, "S 1 C P+C"]
    """Whether a token of a suffix attends to a key: to its whole prefix, and to its suffix up to itself."""
    origin: Int[Tensor, " T"]  # the index of each token in the flattened prefixes followed by the flattened suffixes


@dataclass(frozen=True)
class Family:
    """Rows (their indices) that share their first `prefix` tokens."""

    prefix: int
    rows: list[int]


def families(rows: Sequence[Row]) -> list[Family]:
    """Divide rows into families so that most tokens are shared, by dynamic programming on sorted rows."""
    # Token ids are not negative, so their big-endian bytes sort in the same order.
    keys = [row.astype(">u4").tobytes() for row in rows]
    order = sorted(range(len(rows)), key=keys.__getitem__)
    ordered = [rows[i] for i in order]
    common = [0, *(_common_prefix(*pair) for pair in pairwise(ordered))]
    saved, start = [0] * (len(rows) + 1), [0] * (len(rows) + 1)  # of the best division of the first `end` rows
    for end in range(1, len(rows) + 1):
        saved[end], start[end] = saved[end - 1], end - 1
        prefix = common[end - 1]
        for first in range(end - 2, max(-1, end - 1 - _LARGEST_FAMILY), -1):
            if prefix == 0:
                break
            if (gain := saved[first] + prefix * (end - 1 - first)) > saved[end]:
                saved[end], start[end] = gain, first
            prefix = min(prefix, common[first])
    found: list[Family] = []
    end = len(rows)
    while end:
        members = order[start[end] : end]
        prefix = min(common[start[end] + 1 : end], default=len(rows[members[0]]))
        found.append(Family(prefix, members))
        end = start[end]
    return found[::-1]


def _common_prefix(one: Row, other: Row) -> int:
    shorter = min(len(one), len(other))
    differing = np.flatnonzero(one[:shorter] != other[:shorter])
    return int(differing[0]) if len(differing) else shorter


def pack_rows(rows: Sequence[Row], device: torch.device) -> PackedRows:
    """Pack rows. No row may be empty."""
    places_BL = np.zeros((len(rows), max(map(len, rows), default=0)), np.int64)
    prefixes: list[Row] = []
    suffixes: list[Row] = []
    prefix_of_suffix: list[int] = []
    end = 0
    for number, family in enumerate(families(rows)):
        prefixes.append(np.arange(end, end := end + family.prefix))
        for row in family.rows:
            suffix = np.arange(end, end := end + len(rows[row]) - family.prefix)
            places_BL[row, : len(rows[row])] = np.concatenate((prefixes[-1], suffix))
            if len(suffix):
                suffixes.append(suffix)
                prefix_of_suffix.append(number)
    real_BL = length_mask(torch.tensor([len(row) for row in rows]), places_BL.shape[1]).numpy()
    token_ids, position_ids = np.zeros((2, 1, end), np.int64)
    token_ids[0, places_BL[real_BL]] = np.concatenate(rows)
    position_ids[0, places_BL[real_BL]] = np.nonzero(real_BL)[1]

    prefixes_GP, suffixes_SC = pad_tokens(prefixes, 0), pad_tokens(suffixes, 0)
    width, length = prefixes_GP.shape[1], suffixes_SC.shape[1]
    real_GP = length_mask(torch.tensor([len(prefix) for prefix in prefixes]), width)
    real_SC = length_mask(torch.tensor([len(suffix) for suffix in suffixes]), length)
    of_suffix = torch.tensor(prefix_of_suffix, dtype=torch.long)
    # Padding after a suffix attends to everything before it, so that no query is left without a key.
    sees_prefix = real_GP[of_suffix, None].expand(-1, length, -1)
    sees_itself = torch.ones(length, length, dtype=torch.bool).tril().expand(len(suffixes), -1, -1)
    real = torch.cat((real_GP.flatten(), real_SC.flatten()))
    origin = torch.zeros(end, dtype=torch.long)
    origin[torch.cat((prefixes_GP.flatten(), suffixes_SC.flatten()))[real]] = real.nonzero().squeeze(1)
    made = PackedRows(
        token_ids=torch.from_numpy(token_ids),
        position_ids=torch.from_numpy(position_ids),
        places=torch.from_numpy(places_BL),
        prefixes=prefixes_GP,
        suffixes=suffixes_SC,
        suffix_keys=torch.cat((prefixes_GP[of_suffix], suffixes_SC), dim=1),
        suffix_sees=torch.cat((sees_prefix, sees_itself), dim=-1)[:, None],
        origin=origin,
    )
    return PackedRows(**{name: tensor.to(device) for name, tensor in vars(made).items()})


_NAME = "cooper_packed_sdpa"


def enable_packing(model: PreTrainedModel) -> bool:
    """Make `packed_hidden_states` usable on a model. If its result would be different, return False and change nothing.

    It works for causal models with full attention by PyTorch's SDPA through transformers' attention interface. What the
    config does not show (a recurrent state, unusual positions) is found with two short rows.
    """
    config: Any = model.config
    takes_keywords = getattr(model, "_supports_attention_backend", False)
    windows = getattr(config, "sliding_window", None) is not None and getattr(config, "use_sliding_window", True)
    other_layers = set(getattr(config, "layer_types", None) or []) - {"full_attention"}
    if not takes_keywords or windows or other_layers or config._attn_implementation != "sdpa":
        return False
    AttentionInterface.register(_NAME, _attention)
    AttentionMaskInterface.register(_NAME, sdpa_mask)
    model.set_attn_implementation(_NAME)
    if not (agrees := _agrees(model)):
        model.set_attn_implementation("sdpa")
    return agrees


def packed_hidden_states(model: PreTrainedModel, packed: PackedRows) -> Float[Tensor, "T H"]:
    # The bias is made once, in the type of the attention, because autograd keeps the inputs of each layer.
    kind = model.device.type
    halved = torch.is_autocast_enabled(kind) and not _stays_float32(model.device)
    dtype = torch.get_autocast_dtype(kind) if halved else model.dtype
    seen = packed.suffix_sees
    # Without a mask transformers makes one of T x T. It passes on a mask of four dimensions, which is not read here.
    no_mask = torch.ones(1, 1, 1, 1, device=packed.token_ids.device)
    return model.base_model(
        packed.token_ids,
        attention_mask=no_mask,
        position_ids=packed.position_ids,
        use_cache=False,
        packed_rows=packed,
        packed_bias=torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, -torch.inf),
    ).last_hidden_state[0]


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **settings: Any
) -> tuple[Float[Tensor, "B T heads size"], None]:
    """Query [B, heads, T, size], key and value [B, kv_heads, T, size]; a packed bias [S, 1, C, P+C]."""
    packed_rows, packed_bias = settings.pop("packed_rows", None), settings.pop("packed_bias", None)
    if packed_rows is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **settings)
    in_float32 = torch.is_autocast_enabled("cpu") and _stays_float32(query.device)
    with torch.autocast("cpu", enabled=False) if in_float32 else nullcontext():
        q, k, v = (x[0].transpose(0, 1).float() if in_float32 else x[0].transpose(0, 1) for x in (query, key, value))
        prefixes, suffixes, scale = packed_rows.prefixes, packed_rows.suffixes, settings.get("scaling")
        attended = [_attend(q, k, v, prefixes, prefixes, is_causal=True, scale=scale)]
        if len(suffixes):
            attended.append(_attend(q, k, v, suffixes, packed_rows.suffix_keys, attn_mask=packed_bias, scale=scale))
        tokens = torch.cat([x.flatten(0, 1) for x in attended]).index_select(0, packed_rows.origin)
        return tokens[None], None


def _stays_float32(device: torch.device) -> bool:
    """Whether attention is float32 under autocast too: for short rows bfloat16 kernels on a CPU are slower."""
    return device.type == "cpu" and has_bfloat16()


def _attend(
    q: Tensor, k: Tensor, v: Tensor, queries: Int[Tensor, "N C"], keys: Int[Tensor, "N L"], **how: Any
) -> Float[Tensor, "N C heads size"]:
    """Attention of the tokens [T, heads, size] at the places `queries` to those [T, kv_heads, size] at `keys`."""
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
    plain = (model.base_model(torch.from_numpy(row)[None].to(model.device), use_cache=False) for row in rows)
    return all(
        torch.allclose(hidden[places[: len(row)]], alone.last_hidden_state[0], rtol=1e-3, atol=1e-3)
        for row, places, alone in zip(rows, packed.places, plain, strict=True)
    )
