"""The fast path of decoding on a CPU: one token for every row of a Llama-shaped model in few tensor operations.

Transformers' modules spend most of a small batch's time between the matrix products. Here the projections of queries,
keys and values are one product, as are the MLP's gate and input; weights are packed for oneDNN where that is faster.
A low-rank adapter is merged into the copy.
Everything else (prompts, other architectures, other devices) takes transformers' own forward pass.
"""

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
        self._embedding: Tensor = body.embed_tokens.weight
        self._rotary = body.rotary_emb
        self._eps: float = config.rms_norm_eps
        self._heads: int = config.num_attention_heads
        self._kv_heads: int = config.num_key_value_heads
        self._blocks = [_block(layer, dtype) for layer in body.layers]
        self._norm: Tensor = body.norm.weight
        self._head = PackedLinear([model.get_output_embeddings()], dtype)  # pyright: ignore[reportArgumentType]

    def step(
        self, token_ids: Int[Tensor, " rows"], positions: Int[Tensor, "rows one"], cache: GroupedCache
    ) -> Float[Tensor, "rows vocab"]:
        """Append one token to every row and return the logits of the next token."""
        rows = len(token_ids)
        x = F.embedding(token_ids, self._embedding)
        cos, sin = self._rotary(x[:, None], positions)
        cos, sin = cos.transpose(0, 1).reshape(rows, 1, -1), sin.reshape(rows, 1, -1)
        for layer, block in enumerate(self._blocks):
            x = x + self._attention(layer, self._normed(x, block.norm), cos, sin, cache)
            gate, up = block.gate_up(self._normed(x, block.mlp_norm)).chunk(2, dim=-1)
            x = x + block.down(F.silu(gate) * up)
        return self._head(self._normed(x, self._norm))

    def _attention(self, layer: int, x: Tensor, cos: Tensor, sin: Tensor, cache: GroupedCache) -> Tensor:
        rows, heads, kv_heads = len(x), self._heads, self._kv_heads
        projected = self._blocks[layer].query_key_value(x).view(rows, heads + 2 * kv_heads, -1)
        turned = projected[:, : heads + kv_heads]
        low, high = turned.chunk(2, dim=-1)
        turned = turned * cos + torch.cat((-high, low), dim=-1) * sin
        # The query heads that share a key head become its queries, so keys are not repeated.
        queries = turned[:, :heads].reshape(rows, kv_heads, heads // kv_heads, -1)
        values = projected[:, heads + kv_heads :, None]
        attended = cache.attend(layer, queries, turned[:, heads:, None], values)
        return self._blocks[layer].output(attended.reshape(rows, -1))

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
