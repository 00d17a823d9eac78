"""A sampler: the model's own distribution, log-probabilities that agree with the learner's, seeds and stops."""

from itertools import product

import numpy as np
import plain
import pytest
import torch
from plain import VOCABULARY

from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_rl.data.prompts import PromptEncoder
from cooper_rl.engines.base import Sampler
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.policy.environments.environment import Environments
from cooper_rl.policy.environments.rounds import Rounds
from cooper_rl.records import Column
from cooper_verify.problems.config import PromptConfig
from drawn import draw

PROMPTS = [[5, 6, 7], list(range(10, 31)), [40], [9, 8, 9, 8, 9, 8]]


@pytest.fixture
def engine(sampling_engine):
    """More than those whose learners are tested."""
    return sampling_engine


@pytest.fixture
def policy(engine, folders):
    settings = {"model": str(folders / "policy"), "learning_rate": 1e-2, **plain.ON}
    return engine.policy(LearnerConfig.model_validate(settings), 10, True)


@pytest.fixture
def sampler(engine, folders, policy) -> Sampler:
    made = engine.sampler(folders / "policy")
    made.sync_weights(policy)
    return made


def test_columns_fit_together(sampler):
    samples = sampler.sample(PROMPTS, 3, SamplingParams(max_tokens=9), seed=0)
    assert len(samples) == len(samples.texts) == len(samples.stopped) == 12
    assert len(samples.logprobs) == len(samples.token_ids.values)
    assert 1 <= samples.token_ids.lengths.min() <= samples.token_ids.lengths.max() <= 9


@pytest.mark.parametrize("filters", [{}, {"top_p": 0.95, "top_k": 30}, {"top_k": 50, "min_tokens": 3}])
@pytest.mark.parametrize("temperature", [1.0, 0.8])
def test_logprobs_are_the_learners_at_that_temperature_before_filters(engine, sampler, policy, temperature, filters):
    params = SamplingParams(temperature=temperature, max_tokens=60, **filters)
    samples = sampler.sample(PROMPTS, 8, params, seed=3)
    assert len(set(samples.token_ids.lengths)) > 3  # rows that end at different times
    if filters and not engine.unfiltered_logprobs:
        assert np.isnan(samples.logprobs).all()
        return
    sequences = [[*PROMPTS[i // 8], *row.tolist()] for i, row in enumerate(samples.token_ids)]
    expected = policy.logprobs(Column.of(sequences), samples.token_ids.lengths, temperature)
    np.testing.assert_allclose(samples.logprobs, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("filters", [{}, {"top_p": 0.95}])
def test_turns_have_the_learners_logprobs_and_the_rest_is_the_environments(engine, sampler, policy, folders, filters):
    tokenizer = load_tokenizer(str(folders / "policy"))
    environments = Environments("policy.environments.worlds:Adder", 20)
    encoder = PromptEncoder(tokenizer, PromptConfig(template="{question}"))
    rounds = Rounds(environments, encoder, 3, "policy.environments.worlds:CallsAlways", 1.0, lambda problem: False)
    problems = [Problem("sum", "12+7?", "19"), Problem("product", "3*4?", "12")]
    prompts, samples, metrics = rounds.draw(sampler, problems, 8, SamplingParams(max_tokens=60, **filters), 3)
    assert metrics["environment/calls"] > 3
    ends = samples.token_ids.offsets[1:-1]
    for row, written, run in zip(samples.token_ids, np.split(samples.written, ends), samples.answers(), strict=True):
        results = [turn["content"] for turn in run.messages or () if turn["role"] == "tool"]
        assert row[~written].tolist() == [token for text in results for token in tokenizer.encode(f"={text};")]
    if filters and not engine.unfiltered_logprobs:
        assert np.isnan(samples.logprobs).all()
        return
    sequences = [[*prompts[i // 8], *row.tolist()] for i, row in enumerate(samples.token_ids)]
    expected = policy.logprobs(Column.of(sequences), samples.token_ids.lengths)
    np.testing.assert_allclose(samples.logprobs[samples.written], expected[samples.written], rtol=0, atol=1e-4)


def test_greedy_logprobs_are_at_temperature_one(sampler, policy):
    samples = sampler.sample(PROMPTS[:1], 1, SamplingParams(temperature=0, max_tokens=12), seed=0)
    sequence = Column.of([[*PROMPTS[0], *samples.token_ids[0].tolist()]])
    np.testing.assert_allclose(samples.logprobs, policy.logprobs(sequence, samples.token_ids.lengths), atol=1e-4)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_samples_follow_the_exact_distribution(sampler, folders, temperature):
    """Enumerates every completion of two tokens; unlikely ones are counted together."""
    prompt, n, model = [5, 9, 12], 6000, plain.causal(folders / "policy")
    size = model.config.vocab_size
    with torch.no_grad():
        first = (model(torch.tensor([prompt])).logits[0, -1] / temperature).softmax(-1)
        pairs = torch.tensor([[*prompt, token] for token in range(size)])
        then = (model(pairs).logits[:, -1] / temperature).softmax(-1)
    expected = {(0,): first[0].item()}  # end of sequence
    expected |= {(a, b): (first[a] * then[a, b]).item() for a, b in product(range(1, size), range(size))}
    assert sum(expected.values()) == pytest.approx(1)
    samples = sampler.sample([prompt], n, SamplingParams(max_tokens=2, temperature=temperature), seed=11)
    drawn = [tuple(row.tolist()) for row in samples.token_ids]
    likely = [key for key, p in expected.items() if n * p >= 10]
    observed = np.array([drawn.count(key) for key in likely])
    mean = n * np.array([expected[key] for key in likely])
    observed, mean = np.append(observed, n - observed.sum()), np.append(mean, n - mean.sum())
    freedom = len(likely)
    chi_square = ((observed - mean) ** 2 / mean).sum()
    assert len(likely) > 20
    assert chi_square < freedom + 4 * (2 * freedom) ** 0.5  # its mean plus four standard deviations


def test_the_seed_decides_the_text(sampler):
    params = SamplingParams(max_tokens=20)
    first = draw(sampler, PROMPTS, 4, params, seed=1)
    assert draw(sampler, PROMPTS, 4, params, seed=1) == first
    assert draw(sampler, PROMPTS, 4, params, seed=2) != first
    assert len({completion.text for completion in first[0]}) > 1


def test_end_of_sequence_is_drawn_and_not_in_the_text(sampler):
    completions = [c for group in draw(sampler, PROMPTS, 8, SamplingParams(max_tokens=60), seed=0) for c in group]
    assert any(c.stopped for c in completions)
    for c in completions:
        assert (c.token_ids[-1] == 0) == c.stopped
        assert 0 not in c.token_ids[:-1]
        assert c.text == "".join(VOCABULARY[token] for token in c.token_ids if token > 1)


def test_a_stop_string_keeps_its_tokens_and_leaves_the_text(sampler):
    groups = draw(sampler, PROMPTS, 8, SamplingParams(max_tokens=60, stop=("a", "7+")), seed=4)
    ended = [c for group in groups for c in group if c.stopped and c.token_ids[-1] != 0]
    assert ended
    for c in ended:
        written = "".join(VOCABULARY[token] for token in c.token_ids if token > 1)
        assert written.endswith(("a", "7+"))
        assert c.text == written.removesuffix("a").removesuffix("7+")


def test_stop_tokens_of_the_user_stop(sampler):
    (group,) = draw(sampler, [[3]], 32, SamplingParams(max_tokens=60, stop_token_ids=(20, 21)), seed=0)
    assert {c.token_ids[-1] for c in group if c.stopped} == {0, 20, 21}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_no_completion_ends_before_min_tokens(sampler, temperature):
    params = SamplingParams(temperature=temperature, min_tokens=6, max_tokens=9, stop_token_ids=tuple(range(1, 30)))
    samples = sampler.sample([[5, 6, 7]], 32, params, seed=0)
    assert samples.token_ids.lengths.min() >= 6
    assert samples.stopped.any()


def test_a_prompt_without_room_is_an_input_error(sampler):
    with pytest.raises(InputError, match="prompt 1 has 128 tokens"):
        sampler.sample([[4], [5] * 128], 2, SamplingParams(max_tokens=4), seed=0)
    with pytest.raises(InputError, match="prompt 0 is empty"):
        sampler.sample([[]], 2, SamplingParams(max_tokens=4), seed=0)


def test_nothing_to_sample_gives_nothing(sampler):
    assert len(sampler.sample([], 4, SamplingParams(), seed=0)) == 0


def test_weights_are_the_learners_at_sync_weights(engine, folders, policy):
    greedy, sampler = SamplingParams(temperature=0, max_tokens=12), engine.sampler(folders / "policy")
    with pytest.raises(RuntimeError, match="sync_weights"):
        sampler.sample(PROMPTS, 1, greedy, seed=0)
    sampler.sync_weights(policy)
    before = draw(sampler, PROMPTS, 1, greedy, seed=0)
    other = engine.policy(LearnerConfig(model=str(folders / "other_policy"), **plain.ON), 1, False)
    sampler.sync_weights(other)
    assert draw(sampler, PROMPTS, 1, greedy, seed=0) != before


def test_a_learner_of_another_kind_is_refused(engine, folders):
    with pytest.raises(TypeError, match="learner"):
        engine.sampler(folders / "policy").sync_weights(object())  # pyright: ignore[reportArgumentType]
