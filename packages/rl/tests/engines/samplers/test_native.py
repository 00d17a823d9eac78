"""The native sampler: true log-probabilities, the model's own distribution, reproducible text, correct stops."""

import copy
from itertools import chain

import pytest
import torch

from cooper_base.errors import InputError
from cooper_rl.engines.config import SamplingParams
from cooper_rl.engines.cpu.decoder import can_be_compact
from cooper_rl.engines.local.sampler import NativeSampler
from drawn import draw
from slow_members import first_fast

PROMPTS = [[5, 6, 7], list(range(10, 31)), [40], [9, 8, 9, 8, 9, 8]]


def teacher_forced(model, prompt: list[int], completion: list[int], temperature: float = 1.0) -> torch.Tensor:
    """Log-probabilities of a completion, from one plain forward pass of that row alone."""
    model.eval()
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt + completion])).logits[0]
    logprobs = (logits.float() / temperature).log_softmax(-1)[len(prompt) - 1 : -1]
    return logprobs.gather(-1, torch.tensor(completion)[:, None]).squeeze(-1)


def assert_logprobs_are_the_models(model, prompts, groups, temperature: float = 1.0) -> None:
    for prompt, group in zip(prompts, groups, strict=True):
        for completion in group:
            expected = teacher_forced(model, prompt, completion.token_ids, temperature)
            torch.testing.assert_close(torch.tensor(completion.logprobs), expected, atol=1e-4, rtol=0)


def test_logprobs_equal_a_teacher_forced_forward(model, tokenizer):
    params = SamplingParams(temperature=0.8, top_p=0.95, top_k=30, max_tokens=40)
    groups = draw(NativeSampler(tokenizer, model), PROMPTS, 5, params, seed=3)
    lengths = {len(completion.token_ids) for group in groups for completion in group}
    assert len(lengths) > 3  # the test only means something if rows ended at different times
    assert_logprobs_are_the_models(model, PROMPTS, groups, temperature=0.8)


def test_prompts_of_equal_length_need_no_mask_and_agree(model, tokenizer):
    prompts = [[4, 5, 6], [7, 8, 9]]
    groups = draw(NativeSampler(tokenizer, model), prompts, 3, SamplingParams(max_tokens=70), seed=0)
    assert_logprobs_are_the_models(model, prompts, groups)


def test_greedy_decoding_equals_hugging_face_generate(model, tokenizer):
    groups = draw(NativeSampler(tokenizer, model), PROMPTS, 1, SamplingParams(temperature=0, max_tokens=30), seed=0)
    model.eval()
    for prompt, (completion,) in zip(PROMPTS, groups, strict=True):
        expected = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=30)
        assert completion.token_ids == expected[0, len(prompt) :].tolist()


def test_first_and_second_tokens_follow_the_exact_distribution(llama, tokenizer):
    prompt, samples = [5, 9, 12], 6000
    (group,) = draw(NativeSampler(tokenizer, llama), [prompt], samples, SamplingParams(max_tokens=2), seed=11)
    llama.eval()
    with torch.no_grad():
        first = llama(torch.tensor([prompt])).logits[0, -1].double().softmax(-1)
        pairs = torch.tensor([[*prompt, token] for token in range(64)])
        second_given_first = llama(pairs).logits[:, -1].double().softmax(-1)
    stopped = torch.arange(64) == 1
    second = (first[:, None] * second_given_first)[~stopped].sum(0) / first[~stopped].sum()
    for expected, drawn in [
        (first, [completion.token_ids[0] for completion in group]),
        (second, [completion.token_ids[1] for completion in group if len(completion.token_ids) > 1]),
    ]:
        counts = torch.bincount(torch.tensor(drawn), minlength=64).double()
        chi_square = ((counts - len(drawn) * expected) ** 2 / (len(drawn) * expected)).sum()
        assert float(chi_square) < 107  # 63 degrees of freedom: chance exceeds this four times in ten thousand


@pytest.mark.parametrize("max_rows", first_fast([1, 7, 3, 100], fast=2))
def test_a_completion_does_not_depend_on_what_shares_its_batch(llama, tokenizer, max_rows):
    params = SamplingParams(max_tokens=24)
    together = draw(NativeSampler(tokenizer, llama), PROMPTS, 4, params, seed=5)
    in_waves = draw(NativeSampler(tokenizer, llama, max_rows=max_rows), PROMPTS, 4, params, seed=5)
    # The first group alone, without the neighbours that finished before and after it.
    alone = draw(NativeSampler(tokenizer, llama), PROMPTS[:1], 4, params, seed=5)
    texts = [[completion.text for completion in group] for group in together]
    assert [[completion.text for completion in group] for group in in_waves] == texts
    assert [completion.text for completion in alone[0]] == texts[0]


def test_every_end_of_sequence_token_of_the_generation_config_stops(llama, tokenizer):
    llama.generation_config.eos_token_id = [20, 21]
    (group,) = draw(NativeSampler(tokenizer, llama), [[3]], 32, SamplingParams(max_tokens=60), seed=0)
    assert {completion.token_ids[-1] for completion in group if completion.stopped} == {1, 20, 21}


def test_a_stop_string_keeps_its_tokens_and_leaves_the_text(llama, tokenizer):
    sampler = NativeSampler(tokenizer, llama)
    plain = draw(sampler, PROMPTS, 4, SamplingParams(max_tokens=60), seed=4)
    stopped = draw(sampler, PROMPTS, 4, SamplingParams(max_tokens=60, stop=("a", "7+")), seed=4)
    changed = 0
    for before, after in zip(chain(*plain), chain(*stopped), strict=True):
        assert before.token_ids[: len(after.token_ids)] == after.token_ids
        assert "a" not in after.text
        assert before.text.startswith(after.text)
        if len(after.token_ids) < len(before.token_ids):
            changed += 1
            assert after.stopped
            assert tokenizer.decode(after.token_ids).endswith(("a", "7+"))
    assert changed > 0


def test_a_prompt_that_fills_the_context_is_refused_before_any_forward(llama, tokenizer):
    llama.forward = None  # using the model at all would fail with another error
    with pytest.raises(InputError, match=r"prompt 1 has 96 tokens and the model's context is 96"):
        draw(NativeSampler(tokenizer, llama), [[4], [5] * 96], 2, SamplingParams(max_tokens=4), seed=0)
    with pytest.raises(InputError, match="prompt 0 is empty"):
        draw(NativeSampler(tokenizer, llama), [[]], 2, SamplingParams(max_tokens=4), seed=0)


def test_a_completion_ends_where_the_context_does(llama, tokenizer):
    params = SamplingParams(max_tokens=50)
    (long, short) = draw(NativeSampler(tokenizer, llama), [[5] * 90, [5]], 6, params, seed=0)
    assert all(len(completion.token_ids) <= 6 for completion in long)
    assert any(len(completion.token_ids) == 6 and not completion.stopped for completion in long)
    assert any(len(completion.token_ids) > 6 for completion in short)


def test_weights_are_taken_by_reference_and_the_model_keeps_its_mode(model, tokenizer):
    class TrainedHere:
        def __init__(self) -> None:
            self.model = model

    sampler = NativeSampler(tokenizer)
    with pytest.raises(RuntimeError, match="sync_weights"):
        draw(sampler, [[5]], 1, SamplingParams(max_tokens=4), seed=0)
    sampler.sync_weights(TrainedHere())  # pyright: ignore[reportArgumentType]
    before = draw(sampler, [[5]], 1, SamplingParams(temperature=0, max_tokens=8), seed=0)
    assert model.training
    with torch.no_grad():
        model.lm_head.weight.neg_()
    assert draw(sampler, [[5]], 1, SamplingParams(temperature=0, max_tokens=8), seed=0) != before
    loss = model(input_ids=torch.tensor([[5, 6]]), labels=torch.tensor([[5, 6]])).loss
    loss.backward()  # sampling in between must not disturb autograd


def test_a_learner_without_a_local_model_is_refused(tokenizer):
    with pytest.raises(TypeError, match="native sampler needs a learner with a `model`"):
        NativeSampler(tokenizer).sync_weights(object())  # pyright: ignore[reportArgumentType]


def test_bfloat16_autocast_stays_near_the_float32_logprobs(llama, tokenizer):
    groups = draw(
        NativeSampler(tokenizer, llama, autocast="bfloat16"), PROMPTS, 2, SamplingParams(max_tokens=8), seed=0
    )
    for prompt, group in zip(PROMPTS, groups, strict=True):
        for completion in group:
            expected = teacher_forced(llama, prompt, completion.token_ids)
            torch.testing.assert_close(torch.tensor(completion.logprobs), expected, atol=0.3, rtol=0)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_no_completion_ends_before_min_tokens_and_logprobs_stay_the_models_own(llama, tokenizer, temperature):
    llama.lm_head.weight.data[1] = llama.lm_head.weight.data.mean(0) + 0.5  # this makes end of sequence likely
    params = SamplingParams(temperature=temperature, min_tokens=6, max_tokens=9)
    [completions] = draw(NativeSampler(tokenizer, llama), [[5, 6, 7]], 32, params, seed=0)
    assert all(len(c.token_ids) >= 6 and 1 not in c.token_ids[:6] for c in completions)
    assert any(len(c.token_ids) < 9 for c in completions) or temperature == 0
    with torch.no_grad():
        token_ids = torch.tensor([[5, 6, 7, *completions[0].token_ids]])
        expected = llama.eval()(token_ids).logits.log_softmax(-1)[0, 2:-1].gather(1, token_ids[0, 3:, None])
    assert torch.allclose(torch.tensor(completions[0].logprobs), expected.flatten(), atol=1e-4)


def test_a_minimum_above_the_maximum_is_refused():
    with pytest.raises(ValueError, match="min_tokens: 7 exceeds max_tokens: 5"):
        SamplingParams(min_tokens=7, max_tokens=5)


@pytest.mark.parametrize("prompts", [[[5, 6, 7], [8, 9]], [[5, 6, 7], [8, 9, 10]]], ids=["padded", "even"])
def test_the_compact_decoder_draws_what_transformers_own_forward_pass_draws(model, tokenizer, prompts, monkeypatch):
    params = SamplingParams(max_tokens=40)
    compact = draw(NativeSampler(tokenizer, model), prompts, 6, params, seed=3)
    monkeypatch.setattr("cooper_rl.engines.cpu.decoder.can_be_compact", lambda model: False)
    plain = draw(NativeSampler(tokenizer, model), prompts, 6, params, seed=3)
    for ours, theirs in zip(compact, plain, strict=True):
        assert [c.token_ids for c in ours] == [c.token_ids for c in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert torch.allclose(torch.tensor(one.logprobs), torch.tensor(other.logprobs), atol=1e-4)


def test_what_the_compact_decoder_cannot_compute_is_left_to_transformers(llama):
    assert can_be_compact(llama)
    llama.model.layers[1].mlp.down_proj = torch.nn.Sequential(llama.model.layers[1].mlp.down_proj)  # as an adapter does
    assert not can_be_compact(llama)


def test_only_plain_models_in_float32_are_compact(llama):
    assert not can_be_compact(copy.deepcopy(llama).double())
    llama.config.hidden_act = "gelu"
    assert not can_be_compact(llama)
