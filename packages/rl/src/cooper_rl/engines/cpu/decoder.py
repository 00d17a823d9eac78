"""Decoding on a CPU: one token for every row of a Llama-shaped model in few tensor operations. Rows that continue one
prompt read it once: all their queries attend to it together, then each to its own row, joined by their normalisers
(FlashAttention, Dao et al. 2022, section 3.1).
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import LlamaForCausalLM, PreTrainedModel, Qwen2ForCausalLM
from transformers.cache_utils import Cache

from cooper_rl.engines.cpu.linear import BFloat16Linear, FastLinear, PackedLinear, version
from cooper_rl.engines.kv_cache import BufferedLayer, build_cache, filling_gaps, keep_in_place

# PyTorch's CPU attention; the public function does not return the normaliser.
_attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


class GroupedCache:
    """The keys and values of G prompts and R rows, in any order. All rows have as many tokens after their prompt."""

    def __init__(self, prompts: Cache, mask: Int[Tensor, "G P"] | None, prompt_of_row: Int[Tensor, " R"]) -> None:
        """`prompts` was filled by a prefill; its layers are buffered. `mask` is 0 at its padding."""
        layers: Any = prompts.layers
        # Under autocast the values are bfloat16, but the keys are float32 because the rotary embedding turned them.
        self._prompts = [(keys.to(values.dtype), values) for keys, values in (layer.filled for layer in layers)]
        self._bias = None
        if mask is not None:
            self._bias = torch.zeros(mask.shape).masked_fill_(mask == 0, -torch.inf)[:, None, None]
        self._own = [BufferedLayer() for _ in self._prompts]
        self._place_rows(prompt_of_row)

    def __len__(self) -> int:
        return len(self._prompt_of_row)

    def keep(self, rows: Int[Tensor, " kept"]) -> None:
        """Keep only these rows, in this order. A row may be named once. Only rows that change place are copied."""
        for own in self._own:
            if own.length:
                own.keep_rows(rows)
        left = self._prompt_of_row[rows]
        prompts = left.unique()
        if len(prompts) < len(self._prompts[0][0]):
            prompts = filling_gaps(prompts)
            self._prompts = [(keep_in_place(k, prompts), keep_in_place(v, prompts)) for k, v in self._prompts]
            self._bias = None if self._bias is None else keep_in_place(self._bias, prompts)
            left = (left[:, None] == prompts).int().argmax(1)
        self._place_rows(left)

    def attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Append one token's keys and values [R, kv_heads, 1, size] to every row. Returns the attention output of its
        queries [R, kv_heads, shared, size], float32.
        """
        prompt_keys, prompt_values = self._prompts[layer]
        queries, keys, values = (x.to(prompt_keys.dtype) for x in (queries, keys, values))
        _, kv_heads, shared, size = queries.shape
        # Queries of one prompt are side by side. Places without a row repeat some row and are not read.
        together = queries.index_select(0, self._row_at)
        together = together.view(-1, self._members, kv_heads, shared, size).transpose(1, 2).flatten(2, 3)
        bias = None if self._bias is None else self._bias.expand(-1, -1, together.shape[2], -1)
        prompt, prompt_sums = _attend(together, prompt_keys, prompt_values, attn_mask=bias)
        own, own_sums = _attend(queries, *self._own[layer].update(keys, values))
        prompt, prompt_sums = (self._rows(x, shared) for x in (prompt, prompt_sums.unsqueeze(-1)))
        share = torch.sigmoid(prompt_sums.float() - own_sums.unsqueeze(-1).float())
        return torch.lerp(own.float(), prompt.float(), share)

    def _place_rows(self, prompt_of_row: Int[Tensor, " R"]) -> None:
        """Give each row a place beside its prompt's other rows. All prompts have as many places as the largest."""
        counts = torch.bincount(prompt_of_row)
        by_prompt = prompt_of_row.argsort(stable=True)
        prompts = prompt_of_row[by_prompt]
        member = torch.arange(len(by_prompt)) - (counts.cumsum(0) - counts)[prompts]
        self._prompt_of_row = prompt_of_row
        self._members = int(counts.max())
        places = prompts * self._members + member
        self._places = torch.empty_like(places).index_copy_(0, by_prompt, places)
        self._row_at = places.new_zeros(len(counts) * self._members).index_copy_(0, places, by_prompt)

    def _rows(self, x: Float[Tensor, "G kv_heads members*shared size"], shared: int) -> Tensor:
        """Undo the side-by-side layout: rows [R, kv_heads, shared, size]."""
        groups, kv_heads, _, size = x.shape
        x = x.view(groups, kv_heads, self._members, shared, size).transpose(1, 2).flatten(0, 1)
        return x.index_select(0, self._places)


class _Block:
    def __init__(self, layer: Any, dtype: torch.dtype) -> None:
        def packed(*layers: nn.Module) -> PackedLinear:
            return PackedLinear([_merged(module) for module in layers], dtype)

        attention, mlp = layer.self_attn, layer.mlp
        self.norm: Tensor = layer.input_layernorm.weight
        self.query_key_value = packed(attention.q_proj, attention.k_proj, attention.v_proj)
        self.output = packed(attention.o_proj)
        self.mlp_norm: Tensor = layer.post_attention_layernorm.weight
        self.gate_up = packed(mlp.gate_proj, mlp.up_proj)
        self.down = packed(mlp.down_proj)


class CompactDecoder:
    """A copy of a model's weights for decoding, with matrix products in `dtype` and the residual stream in float32."""

    def __init__(self, model: PreTrainedModel, dtype: torch.dtype = torch.float32) -> None:
        config: Any = model.config
        body: Any = model.base_model
        self._dtype, self._eps = dtype, config.rms_norm_eps
        self._embedding, self._rotary, self._norm = body.embed_tokens.weight, body.rotary_emb, body.norm.weight
        self._heads, self._kv_heads = config.num_attention_heads, config.num_key_value_heads
        self._blocks = [_Block(layer, dtype) for layer in body.layers]
        self._head = PackedLinear([model.get_output_embeddings()], dtype)  # pyright: ignore[reportArgumentType]

    def step(
        self, token_ids: Int[Tensor, " rows"], positions: Int[Tensor, "rows one"], caches: Sequence[GroupedCache]
    ) -> Float[Tensor, "rows vocab"]:
        """Append one token to every row (those of the first cache, then those of the second, and so on). Returns the
        logits of the next token."""
        sizes = [len(cache) for cache in caches]

        def attend(layer: int, *rows: Tensor) -> Tensor:
            parts = zip(caches, *(x.split(sizes) for x in rows), strict=True)
            attended = [cache.attend(layer, *own) for cache, *own in parts]
            return attended[0] if len(attended) == 1 else torch.cat(attended)

        return self._logits(self._hidden(token_ids, positions, attend))

    def prefill(
        self, token_ids: Int[Tensor, "G T"], positions: Tensor, mask: Int[Tensor, "G P+T"] | None, cache: Cache
    ) -> Float[Tensor, "G vocab"]:
        """Append T tokens to a buffered cache of P tokens; `mask` is 0 at padding. Returns the last tokens' logits."""
        groups, new = token_ids.shape
        held = cache.get_seq_length()
        layers: Any = cache.layers
        seen = torch.ones(new, held + new, dtype=torch.bool).tril(held)
        if mask is not None:
            # Padding sees itself, because attention to nothing is not a number.
            itself = torch.eye(new, held + new, dtype=torch.bool).roll(held, 1)
            seen = (seen & (mask[:, None, None] > 0)) | itself

        def attend(layer: int, *rows: Tensor) -> Tensor:
            queries, keys, values = (x.to(self._dtype).flatten(1, 2).unflatten(0, (groups, new)) for x in rows)
            cached = layers[layer].update(keys.transpose(1, 2), values.transpose(1, 2))
            attended = F.scaled_dot_product_attention(queries.transpose(1, 2), *cached, attn_mask=seen, enable_gqa=True)
            return attended.transpose(1, 2).flatten(0, 1).float()

        x = self._hidden(token_ids.flatten(), positions.reshape(-1, 1), attend)
        return self._logits(x.view(groups, new, -1)[:, -1])

    def _hidden(
        self, token_ids: Int[Tensor, " rows"], positions: Int[Tensor, "rows one"], attend: Callable[..., Tensor]
    ) -> Float[Tensor, "rows hidden"]:
        """`attend` takes a layer, queries [rows, kv_heads, shared, size], keys and values [rows, kv_heads, 1, size]."""
        rows, heads, kv_heads = len(token_ids), self._heads, self._kv_heads
        x = F.embedding(token_ids, self._embedding)
        cos, sin = self._rotary(x[:, None], positions)
        cos, sin = cos.transpose(0, 1).reshape(rows, 1, -1), sin.reshape(rows, 1, -1)
        for layer, block in enumerate(self._blocks):
            projected = block.query_key_value(self._normed(x, block.norm)).float().view(rows, heads + 2 * kv_heads, -1)
            turned = projected[:, : heads + kv_heads]
            low, high = turned.chunk(2, dim=-1)
            turned = turned * cos + torch.cat((-high, low), dim=-1) * sin
            # The query heads that share a key head become its queries, so keys are not repeated.
            queries = turned[:, :heads].reshape(rows, kv_heads, heads // kv_heads, -1)
            attended = attend(layer, queries, turned[:, heads:, None], projected[:, heads + kv_heads :, None])
            x += block.output(attended.flatten(1))
            gate, up = block.gate_up(self._normed(x, block.mlp_norm)).chunk(2, dim=-1)
            x += block.down(F.silu(gate).mul_(up))
        return x

    def _logits(self, x: Float[Tensor, "rows hidden"]) -> Float[Tensor, "rows vocab"]:
        return self._head(self._normed(x, self._norm)).float()

    def _normed(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, weight.shape, weight, self._eps)


def can_be_compact(model: PreTrainedModel) -> bool:
    """Whether `CompactDecoder` computes the same as the model: only for a plain float32 Llama or Qwen 2 on the CPU."""
    config: Any = model.config
    if type(model) not in (LlamaForCausalLM, Qwen2ForCausalLM) or config.hidden_act != "silu":
        return False
    full_attention = all(isinstance(layer, BufferedLayer) for layer in build_cache(config).layers)
    if getattr(config, "sliding_window", None) is not None or not full_attention:
        return False
    if model.device.type != "cpu" or model.dtype != torch.float32:
        return False
    body: Any = model.base_model
    projections = [m for layer in body.layers for m in (*layer.self_attn.children(), *layer.mlp.children())]
    linears = (nn.Linear, BFloat16Linear, FastLinear)
    plain = [m for m in projections if type(getattr(m, "base_layer", m)) in linears]
    return len(plain) == 7 * len(body.layers) and isinstance(model.get_output_embeddings(), nn.Linear)


_kept: "WeakKeyDictionary[PreTrainedModel, tuple[Any, CompactDecoder]]" = WeakKeyDictionary()
"""What each model's decoder was made from, and the decoder."""


def compact_decoder(model: PreTrainedModel, dtype: torch.dtype) -> CompactDecoder | None:
    """A decoder of the current weights; None if `CompactDecoder` cannot compute the model. It is kept until
    `drop_decoder` is called or the weights change, and is not kept for weights of `torch.inference_mode`, whose changes
    cannot be noticed.
    """
    if not can_be_compact(model):
        return None
    if any(parameter.is_inference() for parameter in model.parameters()):
        return CompactDecoder(model, dtype)
    adapters: Any = [module for module in model.modules() if hasattr(module, "base_layer")]
    active = [(bool(adapter.disable_adapters), tuple(adapter.active_adapters)) for adapter in adapters]
    made_of = (dtype, tuple(map(version, model.parameters())), tuple(active))
    kept = _kept.get(model)
    if kept is None or kept[0] != made_of:
        drop_decoder(model)  # before the new one, so that there are never two copies
        _kept[model] = kept = made_of, CompactDecoder(model, dtype)
    return kept[1]


def drop_decoder(model: PreTrainedModel) -> None:
    _kept.pop(model, None)


@torch.no_grad()
def _merged(layer: Any) -> nn.Linear:
    """A copy of the layer with its active adapter added to the weight; a layer without an adapter as it is."""
    base: Any = getattr(layer, "base_layer", layer)  # under peft's
    if base is layer or layer.disable_adapters:
        return base
    weight = base.weight + sum(layer.get_delta_weight(name) for name in layer.active_adapters)
    plain: Any = type(base)(base.in_features, base.out_features, bias=base.bias is not None, device="meta")
    plain.weight, plain.bias = nn.Parameter(weight, requires_grad=False), base.bias
    return plain
