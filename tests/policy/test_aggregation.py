"""Token weights: the share of each token in the loss of a step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from cooper_rl.policy.aggregation import (
    AggregationConfig,
    SequenceMeanTokenMean,
    SequenceMeanTokenSum,
    TokenMean,
    token_weights,
)

ALL = [TokenMean(), SequenceMeanTokenMean(), SequenceMeanTokenSum(normaliser=10)]


@pytest.mark.parametrize(
    ("config", "short", "long"),
    [
        (TokenMean(), 1 / 4, 1 / 4),
        (SequenceMeanTokenMean(), 1 / 2, 1 / 6),
        (SequenceMeanTokenSum(normaliser=10), 1 / 20, 1 / 20),
    ],
)
def test_hand_computed_weights(config, short, long):
    weights = token_weights([1, 3], config, counted=[True, True], kept=[True, True])
    assert weights == [[pytest.approx(short)], [pytest.approx(long)] * 3]


@pytest.mark.parametrize("config", ALL)
def test_leaving_out_a_group_without_spread_changes_no_other_weight(config):
    lengths = [2, 5, 3]
    everything = token_weights(lengths, config, counted=[True] * 3, kept=[True] * 3)
    without_second = token_weights(lengths, config, counted=[True] * 3, kept=[True, False, True])
    assert without_second == [everything[0], [0.0] * 5, everything[2]]


@pytest.mark.parametrize("config", ALL)
def test_a_masked_completion_is_as_if_it_had_not_been_sampled(config):
    masked = token_weights([2, 5, 3], config, counted=[True, False, True], kept=[True, False, True])
    absent = token_weights([2, 3], config, counted=[True] * 2, kept=[True] * 2)
    assert [masked[0], masked[2]] == absent
    assert masked[1] == [0.0] * 5


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8))
def test_means_give_weights_that_sum_to_one(lengths):
    for config in (TokenMean(), SequenceMeanTokenMean()):
        weights = token_weights(lengths, config, counted=[True] * len(lengths), kept=[True] * len(lengths))
        assert [len(row) for row in weights] == lengths
        assert sum(map(sum, weights)) == pytest.approx(1)


@pytest.mark.parametrize("config", ALL)
def test_empty_completions_and_empty_steps_are_no_error(config):
    assert token_weights([0, 2], config, counted=[True, True], kept=[True, True])[0] == []
    assert token_weights([0], config, counted=[True], kept=[True]) == [[]]
    assert token_weights([2], config, counted=[False], kept=[False]) == [[0.0, 0.0]]
    assert token_weights([], config, counted=[], kept=[]) == []


def test_keeping_a_row_that_is_not_counted_is_refused():
    with pytest.raises(ValueError, match="must be counted"):
        token_weights([2, 2], TokenMean(), counted=[True, False], kept=[True, True])


def test_the_constant_of_a_token_sum_must_be_given():
    with pytest.raises(ValidationError, match="normaliser"):
        TypeAdapter(AggregationConfig).validate_python({"kind": "sequence_mean_token_sum"})
