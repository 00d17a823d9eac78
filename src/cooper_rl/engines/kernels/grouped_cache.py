"""A key-value cache for batches in which several rows continue one prompt. The prompt is held and read only once.

All queries of rows with the same prompt attend to it together. Each query then attends to the tokens of its own row.
The two parts are joined by their normalisers, as FlashAttention joins its blocks (Dao et al. 2022, section 3.1).
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers.cache_utils import Cache

from cooper_rl.engines.kernels.kv_cache import BufferedLayer, filled, keep_in_place

# PyTorch's CPU attention; the public function does not return the normaliser.
_attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


class GroupedCache:
    """G prompts and R rows, in any order. All rows have the same number of tokens after their prompt."""

    def __init__(self, prompts: Cache, mask: Int[Tensor, "G P"] | None, prompt_of_row: Int[Tensor, " R"]) -> None:
        """`prompts` was filled by a prefill, and `mask` is 0 at its padding."""
        held = [filled(layer) for layer in prompts.layers if isinstance(layer, BufferedLayer)]
        # Under autocast the values are bfloat16, but the keys are float32 because the rotary embedding turned them.
        self._prompts = [(keys.to(values.dtype), values) for keys, values in held]
        self._bias = None
        if mask is not None:
            self._bias = torch.zeros(mask.shape).masked_fill_(mask == 0, -torch.inf)[:, None, None]
        self._own = [BufferedLayer() for _ in self._prompts]
        self._place_rows(prompt_of_row)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._prompt_of_row)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that its keys and values hold."""
        own = [(layer.keys, layer.values) for layer in self._own]
        tensors = [x for pair in (*self._prompts, *own) for x in pair if x is not None]
        return sum({x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in tensors}.values())

    def keep(self, rows: Int[Tensor, " kept"]) -> None:
        """Continue with these rows only, in this order. Each may be named once. Only rows that move are copied."""
        for own in self._own:
            if own.length:
                own.keep_rows(rows)
        left = self._prompt_of_row[rows]
        prompts = left.unique()
        if len(prompts) < len(self._prompts[0][0]):
            prompts = filling_gaps(prompts)
            self._prompts = [
                (keep_in_place(keys, prompts), keep_in_place(values, prompts)) for keys, values in self._prompts
            ]
            self._bias = None if self._bias is None else keep_in_place(self._bias, prompts)
            left = (left[:, None] == prompts).int().argmax(1)
        self._place_rows(left)

    def attend(
        self,
        layer: int,
        queries: Float[Tensor, "R kv_heads shared size"],
        keys: Float[Tensor, "R kv_heads 1 size"],
        values: Float[Tensor, "R kv_heads 1 size"],
    ) -> Float[Tensor, "R kv_heads shared size"]:
        """Append one token's keys and values to every row. Returns the attention output for its queries, in float32."""
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


def filling_gaps(kept: Int[Tensor, " kept"]) -> Int[Tensor, " kept"]:
    """The rows `kept` (ascending) in an order in which few of them move: the last ones take the free places."""
    free = torch.ones(len(kept), dtype=torch.bool)
    staying = kept[kept < len(kept)]
    free[staying] = False
    order = torch.arange(len(kept))
    order[free] = kept[len(staying) :]
    return order
