"""Filters keep exactly the tokens that their definitions require, and drawing follows the filtered distribution."""

import pytest
import torch

from cooper_rl.engines.config import SamplingParams
from cooper_rl.engines.local.sampling import (
    NUCLEUS_CANDIDATES,
    RowNoise,
    draw_tokens,
    filter_logits,
    invert_cumulative,
    keep_top_k,
    keep_top_p,
)

PROBABILITIES = torch.tensor([[0.1, 0.4, 0.05, 0.25, 0.2]])
LOGITS = PROBABILITIES.log() + 3  # a constant changes nothing


def kept(logits: torch.Tensor) -> list[int]:
    return torch.isfinite(logits[0]).nonzero().flatten().tolist()


@pytest.mark.parametrize(("k", "tokens"), [(1, [1]), (3, [1, 3, 4]), (5, [0, 1, 2, 3, 4]), (99, [0, 1, 2, 3, 4])])
def test_top_k_keeps_the_k_most_likely(k, tokens):
    assert kept(keep_top_k(LOGITS, k)) == tokens


@pytest.mark.parametrize(
    ("p", "tokens"),
    [(0.01, [1]), (0.39, [1]), (0.41, [1, 3]), (0.7, [1, 3, 4]), (0.86, [0, 1, 3, 4]), (0.99, [0, 1, 2, 3, 4])],
)
def test_top_p_keeps_the_smallest_set_that_reaches_p(p, tokens):
    assert kept(keep_top_p(LOGITS, p)) == tokens


def test_filters_act_in_the_documented_order():
    # Top-k 3 leaves 0.4, 0.25 and 0.2, in all 0.85. The first two are 0.76 of that, and top-p 0.7 keeps them.
    # With top-p first, 0.65 < 0.7 would have kept the third as well.
    params = SamplingParams(top_k=3, top_p=0.7)
    assert kept(filter_logits(LOGITS, params)) == [1, 3]


@pytest.mark.parametrize("temperature", [0.01, 100.0])
def test_top_p_gives_the_same_set_whether_or_not_the_whole_vocabulary_is_sorted(temperature):
    vocabulary = 4 * NUCLEUS_CANDIDATES
    logits = torch.randn(3, vocabulary, generator=torch.Generator().manual_seed(0)) / temperature
    probabilities, order = logits.double().softmax(-1).sort(descending=True)
    before = probabilities.cumsum(-1) - probabilities
    expected = torch.zeros(3, vocabulary, dtype=torch.bool).scatter_(-1, order, before < 0.9)
    difference = torch.isfinite(keep_top_p(logits, 0.9)) ^ expected
    assert int(difference.sum(-1).max()) <= 1  # float32 may put one token on either side of the border


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        SamplingParams(temperature=0.5),
        SamplingParams(temperature=2.0, top_k=4),
        SamplingParams(top_p=0.8),
        SamplingParams(temperature=1.3, top_k=5, top_p=0.9),
    ],
    ids=str,
)
def test_drawn_frequencies_match_the_distribution_computed_by_hand(params):
    probabilities = torch.tensor([0.3, 0.02, 0.2, 0.15, 0.05, 0.18, 0.1], dtype=torch.float64)
    unfiltered = probabilities ** (1 / params.temperature)
    unfiltered /= unfiltered.sum()
    expected = unfiltered.clone()
    ranked = sorted(range(7), key=lambda token: -expected[token])
    if params.top_k:
        expected[ranked[params.top_k :]] = 0
        expected /= expected.sum()
    mass = 0.0
    for token in ranked:
        share = float(expected[token])
        if mass >= params.top_p:
            expected[token] = 0
        mass += share
    expected /= expected.sum()

    draws = 40_000
    uniforms = torch.rand(draws, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    tokens, logprobs = draw_tokens(probabilities.log().float().expand(draws, 7), uniforms, params)
    counts = torch.bincount(tokens, minlength=7).double()
    possible = expected > 0
    assert int(counts[~possible].sum()) == 0
    chi_square = ((counts - draws * expected)[possible] ** 2 / (draws * expected)[possible]).sum()
    assert float(chi_square) < 22.5  # 6 degrees of freedom: chance exceeds this once in a thousand
    torch.testing.assert_close(logprobs.double(), unfiltered[tokens].log(), atol=1e-5, rtol=0)


def test_temperature_zero_takes_the_most_likely_token_whatever_the_noise():
    tokens, logprobs = draw_tokens(LOGITS.expand(4, 5), torch.rand(4), SamplingParams(temperature=0, top_k=2))
    assert tokens.tolist() == [1] * 4
    torch.testing.assert_close(logprobs, torch.full((4,), 0.4).log())


def test_extreme_uniform_numbers_never_draw_an_impossible_token():
    weights = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]]).expand(2, 5)
    assert invert_cumulative(weights, torch.tensor([0.0, 1.0])).flatten().tolist() == [1, 3]


def test_logits_without_a_softmax_are_an_error():
    with pytest.raises(FloatingPointError, match="not finite"):
        draw_tokens(torch.tensor([[0.0, torch.nan]]), torch.tensor([0.5]), SamplingParams())


def test_noise_of_a_row_does_not_depend_on_the_other_rows():
    alone = RowNoise(7, [(3, 1)])
    together = RowNoise(7, [(0, 0), (3, 1), (4, 2)])
    own = [float(alone.uniforms(step, [0])[0]) for step in range(150)]
    shared = []
    for step in range(150):
        rows = [0, 1, 2] if step < 40 else [1]  # its neighbours end early
        shared.append(float(together.uniforms(step, rows)[rows.index(1)]))
    assert own == shared
    assert len(set(own)) == 150
    assert float(RowNoise(8, [(3, 1)]).uniforms(0, [0])[0]) != own[0]


@pytest.mark.parametrize("vocabulary", [5, 256, 257, 1000, 50_257])
def test_drawing_by_blocks_takes_the_token_that_a_plain_cumulative_sum_takes(vocabulary):
    generator = torch.Generator().manual_seed(vocabulary)
    logits = 4 * torch.randn(64, vocabulary, generator=generator)
    logits[:, 3:5] = -torch.inf
    weights = (logits - logits.amax(dim=1, keepdim=True)).exp()
    uniforms = torch.rand(64, generator=generator, dtype=torch.float64)
    cumulative = weights.double().cumsum(dim=1)
    plain = torch.searchsorted(cumulative, uniforms[:, None] * cumulative[:, -1:], right=True)
    drawn = invert_cumulative(weights, uniforms)
    assert (drawn == plain).float().mean() > 0.98  # a number within 1e-7 of a border may fall on either side of it,
    assert (drawn - plain).abs().max() <= 1 + 2  # and then takes the neighbour, past the two of weight 0
    assert bool((weights.gather(1, drawn) > 0).all())


def test_unlikely_tokens_are_drawn_as_often_as_they_should_be():
    weights = torch.full((1, 50_000), 1e-6)
    weights[0, 0] = 1.0
    uniforms = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    drawn = invert_cumulative(weights.expand(20_000, -1), uniforms).flatten()
    assert int((drawn == 0).sum()) == pytest.approx(20_000 / 1.049999, abs=2)
    others = drawn[drawn > 0].double()
    assert others.mean().item() == pytest.approx(25_000, rel=0.01)  # evenly over the whole vocabulary


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_forbidden_tokens_are_drawn_as_if_their_logits_were_minus_infinity(temperature):
    torch.manual_seed(0)
    logits, uniforms, forbidden = 30 * torch.randn(40, 600), torch.rand(40, dtype=torch.float64), torch.tensor([3, 300])
    params = SamplingParams(temperature=temperature)
    # In the second case a forbidden token is by far the most likely one of a row.
    for peak in (None, 300):
        if peak is not None:
            logits[7, peak] = 1e4
        tokens, logprobs = draw_tokens(logits, uniforms, params, forbidden)
        expected, _ = draw_tokens(logits.index_fill(1, forbidden, -torch.inf), uniforms, params)
        assert torch.equal(tokens, expected)
        exact = (logits.double() / temperature).log_softmax(-1).gather(1, tokens[:, None]).squeeze(1)
        assert torch.allclose(logprobs.double(), exact, rtol=1e-5, atol=1e-3)
