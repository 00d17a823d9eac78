"""The fast path of decoding on a CPU: one token for every row of a Llama-shaped model in few tensor operations.

Transformers' modules spend most of a small batch's time between the matrix products. Here the projections of queries,
keys and values are one product, as are the MLP's gate and input; weights are packed for oneDNN where that is faster.
A low-rank adapter is merged into the copy.
Everything else (prompts, other architectures, other devices) takes transformers' own forward pass.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import LlamaForCausalLM, PreTrainedModel, Qwen2ForCausalLM
from transformers.cache_utils import Cache

from cooper_rl.engines.kernels.adapted_linear import base_of, merged
from cooper_rl.engines.kernels.bfloat16_linear import BFloat16Linear
from cooper_rl.engines.kernels.grouped_cache import GroupedCache
from cooper_rl.engines.kernels.kv_cache import BufferedLayer
from cooper_rl.engines.kernels.linear import FastLinear, PackedLinear

_ARCHITECTURES = (LlamaForCausalLM, Qwen2ForCausalLM)


@dataclass(frozen=True)
class _Block:
    """One decoder block's weights."""

    norm: Tensor
    query_key_value: PackedLinear
    output: PackedLinear
    mlp_norm: Tensor
    gate_up: PackedLinear
    down: PackedLinear


class CompactDecoder:
    """A copy of a model's weights for decoding. It does not follow later changes of the weights.

    `dtype` is the precision of the matrix products. The residual stream stays float32.
    """

    def __init__(self, model: PreTrainedModel, dtype: torch.dtype = torch.float32) -> None:
        config: Any = model.config
        body: Any = model.base_model
        self._dtype = dtype
        self._embedding: Tensor = body.embed_tokens.weight
        self._rotary = body.rotary_emb
        self._eps: float = config.rms_norm_eps
        self._heads: int = config.num_attention_heads
        self._kv_heads: int = config.num_key_value_heads
        self._blocks = [_block(layer, dtype) for layer in body.layers]
        self._norm: Tensor = body.norm.weight
        self._head = PackedLinear([model.get_output_embeddings()], dtype)  # pyright: ignore[reportArgumentType]

    def step(
        self, token_ids: Int[Tensor, " rows"], positions: Int[Tensor, "rows one"], caches: Sequence[GroupedCache]
    ) -> Float[Tensor, "rows vocab"]:
        """Append one token to every row and return the logits of the next token.

        The rows are those of the first cache, then those of the second, and so on.
        """
        sizes = [len(cache) for cache in caches]

        def attend(layer: int, *rows: Tensor) -> Tensor:
            parts = zip(caches, *(x.split(sizes) for x in rows), strict=True)
            attended = [cache.attend(layer, *own) for cache, *own in parts]
            return attended[0] if len(attended) == 1 else torch.cat(attended)

        return self._logits(self._hidden(token_ids, positions, attend))

    def prefill(
        self,
        token_ids: Int[Tensor, "G T"],
        positions: Int[Tensor, "G T"],
        mask: Int[Tensor, "G P+T"] | None,
        cache: Cache,
    ) -> Float[Tensor, "G vocab"]:
        """Append T tokens to a buffered cache of P tokens; `mask` is 0 at padding. Returns the last tokens' logits.

        Transformers' own pass would bring every weight into oneDNN's layout again.
        """
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
        rows = len(token_ids)
        x = F.embedding(token_ids, self._embedding)
        cos, sin = self._rotary(x[:, None], positions)
        cos, sin = cos.transpose(0, 1).reshape(rows, 1, -1), sin.reshape(rows, 1, -1)
        for layer, block in enumerate(self._blocks):
            attended = attend(layer, *self._queries_keys_values(block, self._normed(x, block.norm), cos, sin))
            x += block.output(attended.flatten(1))
            gate, up = block.gate_up(self._normed(x, block.mlp_norm)).chunk(2, dim=-1)
            x += block.down(F.silu(gate).mul_(up))
        return x

    def _queries_keys_values(
        self, block: _Block, x: Tensor, cos: Tensor, sin: Tensor
    ) -> tuple[
        Float[Tensor, "rows kv_heads shared size"],
        Float[Tensor, "rows kv_heads 1 size"],
        Float[Tensor, "rows kv_heads 1 size"],
    ]:
        rows, heads, kv_heads = len(x), self._heads, self._kv_heads
        projected = block.query_key_value(x).float().view(rows, heads + 2 * kv_heads, -1)
        turned = projected[:, : heads + kv_heads]
        low, high = turned.chunk(2, dim=-1)
        turned = turned * cos + torch.cat((-high, low), dim=-1) * sin
        # The query heads that share a key head become its queries, so keys are not repeated.
        queries = turned[:, :heads].reshape(rows, kv_heads, heads // kv_heads, -1)
        return queries, turned[:, heads:, None], projected[:, heads + kv_heads :, None]

    def _logits(self, x: Float[Tensor, "rows hidden"]) -> Float[Tensor, "rows vocab"]:
        return self._head(self._normed(x, self._norm)).float()

    def _normed(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, weight.shape, weight, self._eps)


def can_be_compact(model: PreTrainedModel) -> bool:
    """Whether `CompactDecoder` computes the same as the model: only for a plain float32 Llama or Qwen 2 on the CPU."""
    if type(model) not in _ARCHITECTURES or model.device.type != "cpu" or model.dtype != torch.float32:
        return False
    config: Any = model.config
    if config.hidden_act != "silu" or getattr(config, "sliding_window", None) is not None:
        return False
    body: Any = model.base_model
    linears = [m for layer in body.layers for m in map(base_of, _projections(layer))]
    plain = [m for m in linears if type(m) in (nn.Linear, BFloat16Linear, FastLinear)]
    return len(plain) == 7 * len(body.layers) and isinstance(model.get_output_embeddings(), nn.Linear)


def is_buffered(cache: Cache) -> bool:
    """Whether a `GroupedCache` can take its prompts from every layer of the cache."""
    return all(isinstance(layer, BufferedLayer) for layer in cache.layers)


def _projections(layer: Any) -> list[nn.Module]:
    return [*layer.self_attn.children(), *layer.mlp.children()]


def _block(layer: Any, dtype: torch.dtype) -> _Block:
    attention, mlp = layer.self_attn, layer.mlp

    def packed(*layers: nn.Module) -> PackedLinear:
        return PackedLinear([merged(one) for one in layers], dtype)

    return _Block(
        norm=layer.input_layernorm.weight,
        query_key_value=packed(attention.q_proj, attention.k_proj, attention.v_proj),
        output=packed(attention.o_proj),
        mlp_norm=layer.post_attention_layernorm.weight,
        gate_up=packed(mlp.gate_proj, mlp.up_proj),
        down=packed(mlp.down_proj),
    )
