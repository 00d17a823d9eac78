"""Compares grouped attention with plain attention over every row's own copy of its prompt."""

import pytest
import torch
import torch.nn.functional as F
from transformers.cache_utils import Cache

from cooper_rl.engines.cpu.decoder import GroupedCache
from cooper_rl.engines.kv_cache import BufferedLayer

KV_HEADS, SHARED, SIZE = 2, 3, 8


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, SIZE)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(
    "kept",
    [
        {},
        {2: [0, 1, 3, 5, 6]},
        {0: [1, 2, 3, 4, 5, 6], 1: [0, 2, 5], 3: [2]},
        {1: [0, 1, 6]},
        {1: [6, 1, 5, 3], 3: [2, 0]},
    ],
    ids=["all stay", "some leave", "down to one row, before the first token too", "a whole prompt leaves", "rows move"],
)
def test_attention_is_that_of_rows_with_prompts_of_their_own(padded, kept):
    torch.manual_seed(0)
    prompts, length, rows = 3, 5, torch.tensor([0, 0, 0, 1, 2, 2, 2])
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]]) if padded else None
    layer = BufferedLayer()
    keys, values = layer.update(draw(prompts, KV_HEADS, length), draw(prompts, KV_HEADS, length))
    cache = GroupedCache(Cache(layers=[layer]), mask, rows)

    plain_keys, plain_values = keys[rows], values[rows]
    seen = torch.ones(prompts, length)[rows] if mask is None else mask[rows]
    for step in range(5):
        if step in kept:
            selection = torch.tensor(kept[step])
            cache.keep(selection)
            plain_keys, plain_values, seen = plain_keys[selection], plain_values[selection], seen[selection]
        queries, new_keys, new_values = (draw(len(seen), KV_HEADS, count) for count in (SHARED, 1, 1))
        plain_keys = torch.cat((plain_keys, new_keys), dim=2)
        plain_values = torch.cat((plain_values, new_values), dim=2)
        seen = torch.cat((seen, torch.ones(len(seen), 1)), dim=1)
        allowed = (seen > 0)[:, None, None]
        expected = F.scaled_dot_product_attention(queries, plain_keys, plain_values, attn_mask=allowed)
        torch.testing.assert_close(cache.attend(0, queries, new_keys, new_values), expected, rtol=0, atol=1e-6)


def test_rows_that_leave_give_their_memory_back(held_bytes):
    layer = BufferedLayer()
    layer.update(draw(16, KV_HEADS, 20), draw(16, KV_HEADS, 20))
    cache = GroupedCache(Cache(layers=[layer]), None, torch.arange(16))

    def attend() -> None:
        rows = len(cache)
        cache.attend(0, draw(rows, KV_HEADS, SHARED), draw(rows, KV_HEADS, 1), draw(rows, KV_HEADS, 1))

    for _ in range(3):
        attend()
    full = held_bytes(cache)
    for rows in (10, 7, 3):
        cache.keep(torch.arange(rows))
        attend()
        assert held_bytes(cache) <= 2.3 * full * rows / 16
