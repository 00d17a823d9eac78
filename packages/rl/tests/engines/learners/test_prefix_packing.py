import json
import random
from itertools import pairwise

import numpy as np
import pytest
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BloomConfig,
    BloomForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    MistralConfig,
    MistralForCausalLM,
    OPTConfig,
    OPTForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from cooper_rl.engines.base import PolicyBatch
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local.attention import enable_packing, packed_hidden_states
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.packing import families, pack_rows
from cooper_rl.engines.losses.policy import PolicyObjective, PPOClip
from cooper_rl.records import Column
from tiny_size import TINY

CPU = torch.device("cpu")
PROMPTS = ([5, 6, 7, 8, 9], [5, 6, 1], [20, 21, 22, 23])
ROWS = [
    *[[*prompt, *completion] for prompt in PROMPTS for completion in ([30, 31, 32], [30, 33], [40], [30, 31, 32])],
    [50, 51],
    [5],
]


def arrays(rows) -> list[np.ndarray]:
    return [np.array(row, np.int32) for row in rows]


def shared(division, rows) -> int:
    return sum(family.prefix * (len(family.rows) - 1) for family in division)


def best_by_trying(rows) -> int:
    """The most tokens that any division of the ordered rows can share."""
    ordered = sorted(rows)
    best = 0
    for cuts in range(2 ** (len(rows) - 1)):
        borders = [0, *(i + 1 for i in range(len(rows) - 1) if cuts >> i & 1), len(rows)]
        total = 0
        for start, end in pairwise(borders):
            columns = zip(*ordered[start:end], strict=False)
            prefix = next((i for i, c in enumerate(columns) if len(set(c)) > 1), min(map(len, ordered[start:end])))
            total += prefix * (end - start - 1)
        best = max(best, total)
    return best


def test_families_share_as_much_as_any_division():
    rng = random.Random(0)
    for _ in range(200):
        rows = [[rng.randint(0, 1) for _ in range(rng.randint(1, 6))] for _ in range(rng.randint(1, 8))]
        division = families(arrays(rows))
        assert sorted(row for family in division for row in family.rows) == list(range(len(rows)))
        for family in division:
            assert len({tuple(rows[row][: family.prefix]) for row in family.rows}) == 1
        assert shared(division, rows) == best_by_trying(rows)


def test_families_are_found_in_dictionary_order_also_above_a_byte():
    rows = [[1, 2], [256, 1], [1], [2, 70_000], [2, 300], [1, 2]]
    division = families(arrays(rows))
    assert [row for family in division for row in family.rows] == sorted(range(len(rows)), key=rows.__getitem__)


def test_a_prompt_stands_once():
    rows = [[1, 2, 3, 4, 10 + i] for i in range(8)] + [[1, 2, 9]]
    assert pack_rows(arrays(rows), CPU).token_ids.shape[1] == 4 + 8 + 3


def test_every_token_has_its_place():
    packed = pack_rows(arrays(ROWS), CPU)
    for row, places in zip(ROWS, packed.places, strict=True):
        assert packed.token_ids[0, places[: len(row)]].tolist() == row
        assert packed.position_ids[0, places[: len(row)]].tolist() == list(range(len(row)))


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_hidden_states_and_gradients_are_those_of_each_row_alone(make_policy, kv_heads):
    model = make_policy(torch.float64, num_key_value_heads=kv_heads)
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(len(row), 32, generator=generator, dtype=torch.float64) for row in ROWS]
    alone = [model.base_model(torch.tensor([row])).last_hidden_state[0] for row in ROWS]
    torch.stack([(a * w).sum() for a, w in zip(alone, weights, strict=True)]).sum().backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()

    assert enable_packing(model)
    packed = pack_rows(arrays(ROWS), CPU)
    hidden = packed_hidden_states(model, packed)
    rows = [hidden[places[: len(row)]] for row, places in zip(ROWS, packed.places, strict=True)]
    for ours, theirs in zip(rows, alone, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    torch.stack([(a * w).sum() for a, w in zip(rows, weights, strict=True)]).sum().backward()
    found = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Qwen2ForCausalLM(Qwen2Config(**TINY)),
        lambda: Qwen3ForCausalLM(Qwen3Config(**TINY, head_dim=8)),
        lambda: GPT2LMHeadModel(GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=4)),
        lambda: OPTForCausalLM(
            OPTConfig(
                vocab_size=64,
                hidden_size=32,
                ffn_dim=48,
                num_hidden_layers=2,
                num_attention_heads=4,
                word_embed_proj_dim=32,
            )
        ),
    ],
)
def test_other_architectures_are_packed_too(make):
    torch.manual_seed(0)
    model = make().eval()
    plain = [model.base_model(torch.tensor([row]), use_cache=False).last_hidden_state[0] for row in ROWS]
    assert enable_packing(model)
    packed = pack_rows(arrays(ROWS), CPU)
    hidden = packed_hidden_states(model, packed)
    for row, places, expected in zip(ROWS, packed.places, plain, strict=True):
        torch.testing.assert_close(hidden[places[: len(row)]], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: MistralForCausalLM(MistralConfig(**TINY, sliding_window=4)),
        lambda: Gemma2ForCausalLM(Gemma2Config(**TINY, head_dim=8)),
        lambda: BloomForCausalLM(BloomConfig(vocab_size=64, hidden_size=32, n_layer=2, n_head=4)),
        lambda: BertForSequenceClassification(
            BertConfig(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
        ),
    ],
    ids=["sliding window", "Gemma 2", "ALiBi", "not causal"],
)
def test_a_model_that_would_compute_another_thing_stays_as_it_is(make):
    torch.manual_seed(0)
    model = make().eval()
    before = model.config._attn_implementation
    assert not enable_packing(model)
    assert model.config._attn_implementation == before


@pytest.mark.parametrize("checkpointing", [False, True])
def test_packing_leaves_log_probabilities_and_gradients_equal(make_policy, checkpointing):
    lengths = np.array([2, 1, 1, 2] * 3 + [1])
    rows = Column.of([row for row in ROWS if len(row) > 1])
    numbers = 0.1 * np.concatenate([np.arange(i, i + n) + 1 for i, n in enumerate(lengths)])
    old = np.full(len(numbers), -1.0)
    batch = PolicyBatch(rows, lengths, numbers, numbers, old, old, temperature=0.7)
    found = {}
    for attention in ("padded", "auto"):
        config = LearnerConfig(model="", device="cpu", attention=attention, gradient_checkpointing=checkpointing)
        learner = TorchPolicyLearner(make_policy(torch.float64), config, 10)
        learner.forward_backward(batch, PolicyObjective(loss=PPOClip(), kl=None))
        gradients = {name: p.grad for name, p in learner.model.named_parameters()}
        found[attention] = (gradients, torch.from_numpy(learner.logprobs(rows, lengths, 0.7)))
    torch.testing.assert_close(found["auto"], found["padded"], rtol=0, atol=1e-10)


def test_a_saved_model_does_not_ask_for_our_attention(make_policy, tmp_path):
    model = make_policy()
    assert enable_packing(model)
    model.save_pretrained(tmp_path)
    assert "cooper" not in json.dumps(json.loads((tmp_path / "config.json").read_text()))
