"""A key-value cache that writes in place into a growing buffer instead of concatenating at every token."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import DynamicCache, PreTrainedConfig
from transformers.cache_utils import Cache, DynamicLayer

GROWTH = 32
"""Columns that a full buffer gains. More would leave more of it empty, fewer would copy it more often."""


class BufferedLayer(DynamicLayer):
    """Keys and values of one full-attention layer: buffers [rows, heads, capacity, head size], used up to `length`."""

    keys: Any
    values: Any

    def __init__(self) -> None:
        super().__init__()
        self.length = 0

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs) -> tuple[Tensor, Tensor]:
        """Append new columns [rows, heads, new, size], and return views of all so far [rows, heads, length, size]."""
        start, self.length = self.length, self.length + key_states.shape[-2]
        if start == 0:
            # A prefill gets no free columns: its rows are about to be repeated, and the free columns would be copied.
            self.keys, self.values, self.is_initialized = key_states, value_states, True
            return key_states, value_states
        if self.length > self.keys.shape[-2]:
            capacity = self.length + GROWTH
            self.keys, self.values = (_copied(buffer, start, capacity) for buffer in (self.keys, self.values))
        self.keys[:, :, start : self.length] = key_states
        self.values[:, :, start : self.length] = value_states
        return self.filled

    @property
    def filled(self) -> tuple[Tensor, Tensor]:
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def reorder_cache(self, beam_idx: Int[Tensor, " kept"]) -> None:
        """Make row i a copy of row `beam_idx[i]`, with room for the tokens to come."""
        capacity = max(self.keys.shape[-2], self.length + GROWTH)
        buffers = (self.keys, self.values)
        self.keys, self.values = (_copied(buffer, self.length, capacity, beam_idx) for buffer in buffers)

    def keep_rows(self, rows: Int[Tensor, " kept"]) -> None:
        """Move rows so that row i holds what row `rows[i]` held. A row may be named once. Only rows that change their
        place are copied."""
        self.keys, self.values = (keep_in_place(buffer, rows, self.length) for buffer in (self.keys, self.values))

    def get_seq_length(self) -> int:
        return self.length

    def reset(self) -> None:
        super().reset()
        self.length = 0


def keep_in_place(buffer: Tensor, rows: Int[Tensor, " kept"], filled: int | None = None) -> Tensor:
    """The buffer [rows, heads, columns, size] with `rows[i]` as row i, each named once and valid up to column `filled`
    (default: all). Its memory is used again as long as at least half of it is needed.
    """
    held = buffer.untyped_storage().nbytes() // buffer.element_size()
    if 2 * len(rows) * buffer[0].numel() < held:
        return _copied(buffer, filled, buffer.shape[2], rows)
    places = (rows != torch.arange(len(rows))).nonzero().squeeze(1)
    if len(places):
        buffer[places, :, :filled] = buffer[rows[places], :, :filled]
    return buffer[: len(rows)]


def _copied(buffer: Tensor, filled: int | None, capacity: int, rows: Tensor | None = None) -> Tensor:
    """A buffer with `capacity` columns. Its first columns are the `filled` ones of `rows` (default: all of them)."""
    source = buffer[:, :, :filled] if rows is None else buffer[:, :, :filled].index_select(0, rows)
    copy = source.new_empty(*source.shape[:2], capacity, source.shape[3])
    copy[:, :, : source.shape[2]] = source
    return copy


def filling_gaps(kept: Int[Tensor, " kept"]) -> Int[Tensor, " kept"]:
    """The rows `kept` (ascending) in an order in which few of them move: the last rows take the free places."""
    free = torch.ones(len(kept), dtype=torch.bool)
    staying = kept[kept < len(kept)]
    free[staying] = False
    order = torch.arange(len(kept))
    order[free] = kept[len(staying) :]
    return order


def build_cache(config: PreTrainedConfig) -> Cache:
    cache = DynamicCache(config=config)
    if any(type(layer) is not DynamicLayer for layer in cache.layers):
        return cache
    buffered: list[Any] = [BufferedLayer() for _ in cache.layers]
    return Cache(layers=buffered) if buffered else Cache(layer_class_to_replicate=BufferedLayer)


def tolerates_padding(config: PreTrainedConfig) -> bool:
    """Whether left-padding leaves the result exact: a recurrent state (Mamba, linear attention) would absorb it."""
    return not any(hasattr(layer, "recurrent_states") for layer in DynamicCache(config=config).layers)
