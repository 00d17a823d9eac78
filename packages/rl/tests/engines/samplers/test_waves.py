"""Rows that enter a batch under way are drawn as if they were alone, and leave nothing behind."""

import gc
from itertools import chain

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, LlamaForCausalLM

from cooper_rl.engines.config import SamplingParams
from cooper_rl.engines.cpu.decoder import CompactDecoder, GroupedCache
from cooper_rl.engines.kv_cache import filling_gaps
from cooper_rl.engines.local import sampler
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.records import Column
from drawn import Drawn, draw
from slow_members import first_fast

PROMPTS = [[5, 6, 7, number] for number in range(8, 20)] + [list(range(10, 10 + length)) for length in range(1, 9)]


@pytest.fixture
def passes(monkeypatch) -> list[list[int]]:
    """The number of rows of each wave, for every pass of the compact decoder."""
    found: list[list[int]] = []
    step = CompactDecoder.step

    def recorded(self, token_ids, positions, caches):
        found.append([len(cache) for cache in caches])
        return step(self, token_ids, positions, caches)

    monkeypatch.setattr(CompactDecoder, "step", recorded)
    return found


def assert_same(groups: list[list[Drawn]], others: list[list[Drawn]]) -> None:
    for one, other in zip(chain(*groups), chain(*others), strict=True):
        assert (one.token_ids, one.text, one.stopped) == (other.token_ids, other.text, other.stopped)
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-4)


def test_a_row_that_enters_late_is_drawn_as_if_it_were_alone(model, tokenizer, passes):
    params = SamplingParams(max_tokens=40)
    entering = draw(NativeSampler(tokenizer, model, max_rows=12), PROMPTS, 3, params, seed=5)
    assert max(map(len, passes)) >= 3  # the test only means something if rows of several ages were in a batch
    assert max(map(sum, passes)) <= 12
    for number, prompt in list(enumerate(PROMPTS))[::5]:
        # The same place in the sample, but no other prompt beside it.
        alone = NativeSampler(tokenizer, model).sample(PROMPTS, 3, params, seed=5, share=range(number, number + 1))
        assert [list(row) for row in alone.token_ids] == [completion.token_ids for completion in entering[number]]
        logprobs_of = Column(alone.logprobs, alone.token_ids.offsets)
        for completion, logprobs in zip(entering[number], logprobs_of, strict=True):
            np.testing.assert_allclose(completion.logprobs, logprobs, atol=1e-5)
            exact = plain_logprobs(model, prompt, completion.token_ids)
            np.testing.assert_allclose(completion.logprobs, exact, atol=1e-4)


def plain_logprobs(model, prompt: list[int], completion: list[int]) -> np.ndarray:
    """Log-probabilities from one plain forward pass in float64."""
    plain = LlamaForCausalLM if isinstance(model, LlamaForCausalLM) else type(model)
    exact = plain(model.config).double().eval()
    exact.load_state_dict(model.state_dict())
    with torch.no_grad():
        logits = exact(input_ids=torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1).gather(1, torch.tensor(completion)[:, None]).squeeze(1).numpy()


def test_every_place_of_a_row_follows_the_models_distribution(llama, tokenizer, passes):
    prompt, samples = [5, 9, 12], 3000
    params = SamplingParams(max_tokens=8, stop_token_ids=tuple(range(2, 32)))  # so that many rows leave early
    (group,) = draw(NativeSampler(tokenizer, llama, max_rows=600), [prompt], samples, params, seed=11)
    assert any(len(waves) > 1 for waves in passes)
    llama.eval()
    with torch.no_grad():
        first = llama(torch.tensor([prompt])).logits[0, -1].double().softmax(-1)
        second = llama(torch.tensor([[*prompt, token] for token in range(64)])).logits[:, -1].double().softmax(-1)
    going = (torch.arange(64) == 0) | (torch.arange(64) >= 32)
    second = (first[:, None] * second)[going].sum(0) / first[going].sum()
    late = [completion.token_ids for completion in group[samples // 2 :]]
    for expected, drawn in ((first, [ids[0] for ids in late]), (second, [ids[1] for ids in late if len(ids) > 1])):
        counts = torch.bincount(torch.tensor(drawn), minlength=64).double()
        chi_square = ((counts - len(drawn) * expected) ** 2 / (len(drawn) * expected)).sum()
        assert float(chi_square) < 107  # 63 degrees of freedom: chance exceeds this four times in ten thousand


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(max_tokens=40, stop=("a", "7+")),
        SamplingParams(max_tokens=32, min_tokens=12, stop_token_ids=(9, 10, 11)),
        SamplingParams(max_tokens=50),
        *first_fast(
            [
                SamplingParams(max_tokens=32, temperature=0.7, top_p=0.9, top_k=20, stop_token_ids=tuple(range(2, 12))),
                SamplingParams(max_tokens=32, temperature=0, stop_token_ids=tuple(range(2, 12))),
            ]
        ),
    ],
    ids=["stop strings", "least tokens", "to the end of the context", "filters", "greedy"],
)
def test_limits_and_stops_hold_for_rows_that_enter_late(llama, tokenizer, passes, params, monkeypatch):
    prompts = [*PROMPTS, [5] * 90]
    plain = draw(NativeSampler(tokenizer, llama), prompts, 3, params, seed=4)
    passes.clear()
    monkeypatch.setattr(sampler, "SMALL_MODEL", 0)  # rows leave sooner, and others take their places
    entering = draw(NativeSampler(tokenizer, llama, max_rows=9), prompts, 3, params, seed=4)
    assert any(len(waves) > 1 for waves in passes)
    assert_same(entering, plain)
    assert all(params.min_tokens <= len(c.token_ids) <= params.max_tokens for group in entering[:-1] for c in group)
    assert all(len(completion.token_ids) <= 6 for completion in entering[-1])


@pytest.mark.slow
def test_the_cache_does_not_grow_with_the_number_of_waves(llama, tokenizer, monkeypatch, held_bytes):
    held: list[int] = []
    step = CompactDecoder.step

    def measured(self, token_ids, positions, caches):
        logits = step(self, token_ids, positions, caches)
        held.append(sum(map(held_bytes, caches)))
        return logits

    monkeypatch.setattr(CompactDecoder, "step", measured)

    def peak(prompts: int) -> int:
        held.clear()
        sampler = NativeSampler(tokenizer, llama, max_rows=16)
        draw(sampler, [[5, 6, 7, 8]] * prompts, 4, SamplingParams(max_tokens=16), seed=0)
        return max(held)

    assert peak(32) < 1.5 * peak(8)
    gc.collect()
    assert not [thing for thing in gc.get_objects() if isinstance(thing, GroupedCache)]


def test_whole_groups_enter_where_they_fit(llama, tokenizer, passes):
    draw(NativeSampler(tokenizer, llama, max_rows=10), PROMPTS[:4], 4, SamplingParams(max_tokens=4, min_tokens=4), 0)
    assert passes[0] == [8]
    passes.clear()
    draw(NativeSampler(tokenizer, llama, max_rows=10), PROMPTS[:1], 24, SamplingParams(max_tokens=4, min_tokens=4), 0)
    assert [waves[0] for waves in passes] == [10] * 6 + [4] * 3


@pytest.mark.parametrize("kind", ["gpt2", "mamba"])
def test_models_without_a_grouped_cache_finish_a_batch_before_the_next(kind, tokenizer):
    torch.manual_seed(0)
    sizes = {"gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4}, "mamba": {"hidden_size": 32, "num_hidden_layers": 2}}
    config = AutoConfig.for_model(kind, vocab_size=64, eos_token_id=1, pad_token_id=0, bos_token_id=1, **sizes[kind])
    model = AutoModelForCausalLM.from_config(config).eval()
    params = SamplingParams(max_tokens=12)
    together = draw(NativeSampler(tokenizer, model), PROMPTS[-6:], 2, params, seed=0)
    assert_same(draw(NativeSampler(tokenizer, model, max_rows=5), PROMPTS[-6:], 2, params, seed=0), together)


@pytest.mark.parametrize("worth", [1, 10**9], ids=["what they share once", "each on its own"])
@pytest.mark.parametrize("prompts", [PROMPTS[:5], [[3, 4, 5, 6, 7, *([9] * more)] for more in (1, 4, 2)], PROMPTS[-3:]])
def test_prompts_that_the_compact_decoder_reads_change_nothing(model, tokenizer, prompts, worth, monkeypatch):
    params = SamplingParams(max_tokens=12)
    plain = draw(NativeSampler(tokenizer, model), prompts, 2, params, seed=1)
    monkeypatch.setattr(sampler, "SMALL_MODEL", 0)
    monkeypatch.setattr(sampler, "COMPACT_FROM_TOKENS", 0)
    monkeypatch.setattr(sampler, "WORTH_SHARING", worth)
    shapes = []
    prefill = CompactDecoder.prefill

    def recorded(self, token_ids, *more):
        shapes.append(tuple(token_ids.shape))
        return prefill(self, token_ids, *more)

    monkeypatch.setattr(CompactDecoder, "prefill", recorded)
    assert_same(draw(NativeSampler(tokenizer, model), prompts, 2, params, seed=1), plain)
    longest, shared = max(map(len, prompts)), shapes[0][1] if len(shapes) == 2 else 0
    assert shapes[-1] == (len(prompts), longest - shared)
    assert (shared > 2) == (worth == 1)


def test_few_rows_move_when_some_leave():
    kept = torch.tensor([0, 2, 3, 5, 8, 9])
    assert filling_gaps(kept).tolist() == [0, 8, 2, 3, 9, 5]
