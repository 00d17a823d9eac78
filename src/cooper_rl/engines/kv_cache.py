"""A key-value cache that writes in place into a growing buffer instead of concatenating at every token."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import DynamicCache, PreTrainedConfig
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicLayer

GROWTH = 32


class BufferedLayer(CacheLayerMixin):
    """Keys and values of one full-attention layer, with free columns after the filled ones.

    `keys` and `values` are buffers [rows, heads, capacity, head size]. Only their first `length` columns are in use.
    """

    is_sliding = False

    def __init__(self) -> None:
        super().__init__()
        self.length = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        # Memory is allocated when the buffer first grows.
        self.keys = key_states[:, :, :0]
        self.values = value_states[:, :, :0]
        self.is_initialized = True

    def update(
        self,
        key_states: Float[Tensor, "rows heads new size"],
        value_states: Float[Tensor, "rows heads new size"],
        *args,
        **kwargs,
    ) -> tuple[Tensor, Tensor]:
        """Append the new columns, and return views of all columns so far [rows, heads, length, size]."""
        start, self.length = self.length, self.length + key_states.shape[-2]
        if start == 0:
            # A prefill gets no free columns: its rows are about to be repeated, and the free columns would be copied.
            self.keys, self.values, self.is_initialized = key_states, value_states, True
            return key_states, value_states
        assert self.keys is not None
        assert self.values is not None
        if self.length > self.keys.shape[-2]:
            capacity = self.length + GROWTH
            self._replace(lambda buffer: _copied(buffer, start, capacity))
        self.keys[:, :, start : self.length] = key_states
        self.values[:, :, start : self.length] = value_states
        return self.filled

    @property
    def filled(self) -> tuple[Tensor, Tensor]:
        """Keys and values of the filled columns, [rows, heads, length, size]."""
        assert self.keys is not None
        assert self.values is not None
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def reorder_cache(self, beam_idx: Int[Tensor, " kept"]) -> None:
        """Make row i a copy of row `beam_idx[i]`, with room for the tokens to come."""
        room = self.length + GROWTH
        self._replace(lambda buffer: _copied(buffer, self.length, max(buffer.shape[-2], room), beam_idx))

    def keep_rows(self, rows: Int[Tensor, " kept"]) -> None:
        """Row i becomes row `rows[i]`. A row may be named once. Only rows that change their place are copied."""
        self._replace(lambda buffer: keep_in_place(buffer, rows, self.length))

    def _replace(self, change: Callable[[Tensor], Tensor]) -> None:
        assert self.keys is not None
        assert self.values is not None
        self.keys, self.values = change(self.keys), change(self.values)

    def get_seq_length(self) -> int:
        return self.length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length + query_length, 0

    def get_max_length(self) -> int:
        return -1

    def get_max_cache_shape(self) -> int:
        return -1  # the name of `get_max_length` in transformers 5.0

    def reset(self) -> None:
        self.keys = self.values = None
        self.is_initialized, self.length = False, 0


def keep_in_place(
    buffer: Float[Tensor, "rows heads columns size"], rows: Int[Tensor, " kept"], filled: int | None = None
) -> Float[Tensor, "kept heads columns size"]:
    """The buffer with `rows[i]` as row i. Its memory is used again as long as at least half of it is needed.

    Only the first `filled` columns (default: all) keep their contents. A row may be named once.
    """
    held = buffer.untyped_storage().nbytes() // buffer.element_size()
    if 2 * len(rows) * buffer[0].numel() < held:
        return _copied(buffer, buffer.shape[2] if filled is None else filled, buffer.shape[2], rows)
    places = (rows != torch.arange(len(rows))).nonzero().squeeze(1)
    if len(places):
        buffer[places, :, :filled] = buffer[rows[places], :, :filled]
    return buffer[: len(rows)]


def _copied(buffer: Tensor, filled: int, capacity: int, rows: Tensor | None = None) -> Tensor:
    """A buffer with `capacity` columns. Its first columns are the `filled` ones of `rows` (default: all rows)."""
    source = buffer[:, :, :filled]
    if rows is not None:
        source = source.index_select(0, rows)
    copy = source.new_empty(*source.shape[:2], capacity, source.shape[3])
    copy[:, :, :filled] = source
    return copy


def filling_gaps(kept: Int[Tensor, " kept"]) -> Int[Tensor, " kept"]:
    """The rows `kept` (ascending) in an order in which few of them move: the last ones take the free places."""
    free = torch.ones(len(kept), dtype=torch.bool)
    staying = kept[kept < len(kept)]
    free[staying] = False
    order = torch.arange(len(kept))
    order[free] = kept[len(staying) :]
    return order


def build_cache(config: PreTrainedConfig) -> Cache:
    """An empty cache for one batch. It is buffered if every layer is full attention, and transformers' own otherwise.

    Sliding-window, linear-attention and hybrid models keep the layer classes that transformers has for them.
    """
    cache = DynamicCache(config=config)
    if any(type(layer) is not DynamicLayer for layer in cache.layers):
        return cache
    if not cache.layers:
        return Cache(layer_class_to_replicate=BufferedLayer)
    return Cache(layers=[BufferedLayer() for _ in cache.layers])


def tolerates_padding(config: PreTrainedConfig) -> bool:
    """Whether left-padding leaves the result exact. A recurrent state (Mamba, linear attention) would absorb it."""
    return not any(hasattr(layer, "recurrent_states") for layer in DynamicCache(config=config).layers)


def select_rows(cache: Cache, rows: Int[Tensor, " kept"]) -> None:
    """Make row i of the cache a copy of row `rows[i]`. This repeats and drops rows, for every kind of layer."""
    cache.reorder_cache(rows)  # pyright: ignore[reportArgumentType]
