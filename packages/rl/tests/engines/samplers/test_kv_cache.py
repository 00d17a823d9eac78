"""The buffered cache holds what transformers' own cache would hold, and does not copy at every token."""

from typing import Any

import torch
from transformers import AutoConfig, DynamicCache

from cooper_rl.engines.kv_cache import BufferedLayer, build_cache

SMALL = {"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2}


def test_it_equals_the_dynamic_cache_through_growth_repeats_and_departures():
    ours: Any = build_cache(AutoConfig.for_model("llama", **SMALL))
    theirs: Any = DynamicCache()
    rows, steps = 3, [5] + [1] * 120
    for step, width in enumerate(steps):
        if step in (1, 60, 90):
            selection = torch.tensor([[0, 0, 1, 1, 2, 2], [5, 1, 3], [2, 0]][(1, 60, 90).index(step)])
            ours.reorder_cache(selection)
            theirs.reorder_cache(selection)
            rows = len(selection)
        for layer in range(2):
            keys, values = torch.randn(rows, 2, width, 4), torch.randn(rows, 2, width, 6)
            for got, expected in zip(ours.update(keys, values, layer), theirs.update(keys, values, layer), strict=True):
                assert torch.equal(got, expected)
        assert ours.get_seq_length() == theirs.get_seq_length() == 5 + step


def test_a_token_is_written_in_place():
    layer = BufferedLayer()
    layer.update(torch.randn(2, 1, 3, 4), torch.randn(2, 1, 3, 4))
    places = {layer.update(torch.randn(2, 1, 1, 4), torch.randn(2, 1, 1, 4))[0].data_ptr() for _ in range(100)}
    assert len(places) < 6


def test_models_with_windows_keep_the_layers_transformers_has_for_them():
    config = AutoConfig.for_model("mistral", **SMALL, num_key_value_heads=2, sliding_window=4)
    assert build_cache(config).is_sliding == [True, True]
