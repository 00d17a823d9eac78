"""Attention over packed rows by one of two kernels that compute the same result: PyTorch's SDPA over padded pieces, and
its FlexAttention over the whole sequence with a block mask.
"""

import logging
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedConfig, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from cooper_base.errors import InputError
from cooper_rl.engines.config import Attention
from cooper_rl.engines.cpu import has_bfloat16
from cooper_rl.engines.local.numerics import exact_float32
from cooper_rl.engines.local.packing import PackedRows, length_mask, pack_rows, pad_tokens

logger = logging.getLogger(__name__)

Kernel = Literal["flex", "sdpa"]
Queries = Float[Tensor, "T heads size"]
Keys = Float[Tensor, "T kv_heads size"]


class SdpaAttention:
    """Prefixes and suffixes, each padded to the longest, in two calls of PyTorch's kernels; suffixes with a bias.

    Padding points to place 0, and no result that is read depends on it.
    """

    def __init__(self, packed: PackedRows, dtype: torch.dtype) -> None:
        device = packed.token_ids.device
        prefixes_GP, suffixes_SC = pad_tokens(packed.prefixes, 0), pad_tokens(packed.suffixes, 0)
        width, length = prefixes_GP.shape[1], suffixes_SC.shape[1]
        real_GP = length_mask(torch.tensor([len(prefix) for prefix in packed.prefixes]), width)
        real_SC = length_mask(torch.tensor([len(suffix) for suffix in packed.suffixes]), length)
        of_suffix = torch.tensor(packed.prefix_of_suffix, dtype=torch.long)
        # A token attends to its whole prefix, and to its suffix up to itself. Padding after a suffix attends to
        # everything before it, so that no query is left without a key.
        sees_prefix = real_GP[of_suffix, None].expand(-1, length, -1)
        sees_itself = torch.ones(length, length, dtype=torch.bool).tril().expand(len(packed.suffixes), -1, -1)
        sees = torch.cat((sees_prefix, sees_itself), dim=-1)[:, None].to(device)
        real = torch.cat((real_GP.flatten(), real_SC.flatten()))
        origin = torch.zeros(packed.token_ids.shape[1], dtype=torch.long)
        origin[torch.cat((prefixes_GP.flatten(), suffixes_SC.flatten()))[real]] = real.nonzero().squeeze(1)
        self._prefixes, self._suffixes = prefixes_GP.to(device), suffixes_SC.to(device)
        self._suffix_keys = torch.cat((prefixes_GP[of_suffix], suffixes_SC), dim=1).to(device)
        self._origin = origin.to(device)  # of each token in the flattened prefixes followed by the flattened suffixes
        # Made once, in the type of the attention, because autograd keeps the inputs of each layer.
        self._bias = torch.zeros(sees.shape, dtype=dtype, device=device).masked_fill_(~sees, -torch.inf)

    def __call__(self, q: Queries, k: Keys, v: Keys, scale: float | None) -> Queries:
        in_float32 = torch.is_autocast_enabled("cpu") and _stays_float32(q.device)
        with torch.autocast("cpu", enabled=False) if in_float32 else nullcontext():
            q, k, v = (x.float() if in_float32 else x for x in (q, k, v))
            attended = [_attend(q, k, v, self._prefixes, self._prefixes, is_causal=True, scale=scale)]
            if len(self._suffixes):
                attended.append(_attend(q, k, v, self._suffixes, self._suffix_keys, attn_mask=self._bias, scale=scale))
            return torch.cat([x.flatten(0, 1) for x in attended]).index_select(0, self._origin)


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


def _take(x: Float[Tensor, "T heads size"], places: Int[Tensor, "*N"]) -> Float[Tensor, "*N heads size"]:
    # As an embedding, because of all ways to gather rows it has the fastest backward pass.
    return F.embedding(places, x.flatten(1)).unflatten(-1, x.shape[1:])


BLOCK = 128
"""Queries and keys of a block of FlexAttention."""


class FlexAttention:
    """The whole sequence in one call: blocks of 128 x 128 in which no token sees another are left out.

    It is padded to whole blocks and at least two, because the compiler takes fewer for another kernel to compile.
    """

    def __init__(self, packed: PackedRows, dtype: torch.dtype) -> None:
        from torch.nn.attention.flex_attention import create_block_mask  # noqa: PLC0415 - takes half a second

        device, tokens = packed.token_ids.device, packed.token_ids.shape[1]
        length = max(2 * BLOCK, -(-tokens // BLOCK) * BLOCK)
        pieces, parents = np.full((2, length), -1)
        for number, prefix in enumerate(packed.prefixes):
            pieces[prefix] = parents[prefix] = number
        for number, (suffix, parent) in enumerate(zip(packed.suffixes, packed.prefix_of_suffix, strict=True)):
            pieces[suffix], parents[suffix] = len(packed.prefixes) + number, parent
        piece, parent = torch.from_numpy(pieces).to(device), torch.from_numpy(parents).to(device)

        def sees(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return (key <= query) & ((piece[key] == piece[query]) | (piece[key] == parent[query]))

        self._mask = create_block_mask(sees, None, None, length, length, device=device, BLOCK_SIZE=BLOCK)
        self._dtype, self._attend, self._padding = dtype, _flex_attention(device.type), length - tokens

    def __call__(self, q: Queries, k: Keys, v: Keys, scale: float | None) -> Queries:
        tokens, grouped = len(q), q.shape[1] != k.shape[1]
        q, k, v = (F.pad(x.to(self._dtype).transpose(0, 1), (0, 0, 0, self._padding))[None] for x in (q, k, v))
        attended = self._attend(q, k, v, block_mask=self._mask, scale=scale, enable_gqa=grouped)
        return attended[0, :, :tokens].transpose(0, 1)


KINDS_OF_INPUT = 64
"""How many compiled versions of FlexAttention a process may have; PyTorch's own 8 is too few for two models."""


@cache
def _flex_attention(device: str) -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention  # noqa: PLC0415

    if device != "cuda":  # a compiler need not be there
        return flex_attention
    from torch._dynamo import config as dynamo  # noqa: PLC0415 - takes half a second

    # Each length would be a kernel of its own; so would too many kinds of input (models, types, with and without
    # gradient), and then PyTorch goes on without compilation, which makes all T x T scores. `fullgraph` raises instead.
    dynamo.recompile_limit = max(dynamo.recompile_limit, KINDS_OF_INPUT)
    return torch.compile(flex_attention, dynamic=True, fullgraph=True)


KERNELS: dict[Kernel, type[FlexAttention | SdpaAttention]] = {"flex": FlexAttention, "sdpa": SdpaAttention}


def choose_kernel(
    wanted: Attention, model: PreTrainedConfig, device: torch.device, bfloat16: bool, learns: bool
) -> Kernel:
    """The kernel for a model with these heads that `enable_packing` has taken, for products in `bfloat16` or float32.

    On a GPU `auto` is flex if Triton is installed and flex passes a trial (`kernel_error`), else sdpa. Raises
    InputError if flex is `wanted` and cannot run, and what it raises in its trial.
    """
    if wanted == "flex":
        if device.type != "cuda" and learns:
            raise InputError(f"attention: FlexAttention has no backward pass on {device.type}; leave out attention")
        if (error := kernel_error("flex", model, device, bfloat16, learns)) > AGREES:
            raise InputError(
                f"attention: the result of flex differs from that of sdpa on {device}: {error:.2g}; use auto"
            )
        return "flex"
    if wanted == "auto" and device.type == "cuda" and find_spec("triton"):
        try:
            if (error := kernel_error("flex", model, device, bfloat16, learns)) <= AGREES:
                return "flex"
            reason = f"it differs from sdpa by {error:.2g}"
        except Exception as fault:  # noqa: BLE001 - whatever a kernel raises on a device that it was not made for
            reason = str(fault).strip().partition("\n")[0]
        logger.warning("attention: flex cannot be used on %s: %s", device, reason)
    return "sdpa"


AGREES = 0.02
"""The largest difference from SDPA, relative to its norm, at which a kernel is used. bfloat16 rounds to 0.4 %."""


def kernel_error(kernel: Kernel, model: PreTrainedConfig, device: torch.device, bfloat16: bool, learns: bool) -> float:
    """The largest difference between a kernel and SDPA on random numbers, in the result and, if the model `learns`, in
    the three gradients. Each is relative to the norm of SDPA's.
    """
    config: Any = model.get_text_config()
    heads = config.num_attention_heads
    key_heads = getattr(config, "num_key_value_heads", None) or heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    packed = pack_rows([np.array([1, 2, 3, *suffix]) for suffix in ([4, 5], [6], range(7, 150), [])], device)
    dtype, length = torch.bfloat16 if bfloat16 else torch.float32, packed.token_ids.shape[1]
    drawn = np.random.default_rng(0).standard_normal((length, 2 * heads + 2 * key_heads, size)).astype(np.float32)
    *parts, weights = torch.from_numpy(drawn).to(device, dtype).split([heads, key_heads, key_heads, heads], dim=1)
    found: dict[Kernel, list[Tensor]] = {}
    for name in (kernel, "sdpa"):
        inputs = [part.clone().requires_grad_(learns) for part in parts]
        with exact_float32():
            result = KERNELS[name](packed, dtype)(*inputs, None)
            gradients = torch.autograd.grad(result, inputs, weights) if learns else ()
        found[name] = [result.detach(), *gradients]
    pairs = [(ours.double(), plain.double()) for ours, plain in zip(found[kernel], found["sdpa"], strict=True)]
    return max(float((ours - plain).norm() / plain.norm()) for ours, plain in pairs)


_NAME = "cooper_packed"


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


def packed_hidden_states(model: PreTrainedModel, packed: PackedRows, kernel: Kernel = "sdpa") -> Float[Tensor, "T H"]:
    kind = model.device.type
    halved = torch.is_autocast_enabled(kind) and not _stays_float32(model.device)
    dtype = torch.get_autocast_dtype(kind) if halved else model.dtype
    # Without a mask transformers makes one of T x T. It passes on a mask of four dimensions, which is not read here.
    no_mask = torch.ones(1, 1, 1, 1, device=packed.token_ids.device)
    return model.base_model(
        packed.token_ids,
        attention_mask=no_mask,
        position_ids=packed.position_ids,
        use_cache=False,
        packed_attention=KERNELS[kernel](packed, dtype),
    ).last_hidden_state[0]


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **settings: Any
) -> tuple[Float[Tensor, "B T heads size"], None]:
    """Query [B, heads, T, size], key and value [B, kv_heads, T, size]; of packed rows B is 1."""
    if (attend := settings.pop("packed_attention", None)) is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **settings)
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
    return attend(q, k, v, settings.get("scaling"))[None], None


@torch.no_grad()
def _agrees(model: PreTrainedModel) -> bool:
    rows = [np.array([0, 1, 2, 3, 4, 5]), np.array([0, 1, 2, 4, 3])]
    packed = pack_rows(rows, model.device)
    with exact_float32():
        hidden = packed_hidden_states(model, packed)
        plain = [model.base_model(torch.from_numpy(row)[None].to(model.device), use_cache=False) for row in rows]
    return all(
        torch.allclose(hidden[places[: len(row)]], alone.last_hidden_state[0], rtol=1e-3, atol=1e-3)
        for row, places, alone in zip(rows, packed.places, plain, strict=True)
    )
