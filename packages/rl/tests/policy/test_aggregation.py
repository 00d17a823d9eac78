"""Token weights: the share of each token in the loss of a step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from cooper_lab.designs.token_sum import SequenceMeanTokenSum
from cooper_rl.engines.losses.policy import (
    AggregationConfig,
    SequenceMeanTokenMean,
    TokenMean,
    token_weights,
)

ALL = [TokenMean(), SequenceMeanTokenMean(), SequenceMeanTokenSum(normaliser=10)]


def weights_of(lengths, config, counted=None, kept=None):
    counted = [True] * len(lengths) if counted is None else counted
    kept = counted if kept is None else kept
    rows = np.array(lengths, dtype=np.int64)
    return token_weights(rows, config, counted=np.array(counted, bool), kept=np.array(kept, bool)).tolist()


@pytest.mark.parametrize(
    ("config", "short", "long"),
    [
        (TokenMean(), 1 / 4, 1 / 4),
        (SequenceMeanTokenMean(), 1 / 2, 1 / 6),
        (SequenceMeanTokenSum(normaliser=10), 1 / 20, 1 / 20),
    ],
)
def test_hand_computed_weights(config, short, long):
    assert weights_of([1, 3], config) == [pytest.approx(short), pytest.approx(long)]


@pytest.mark.parametrize("config", ALL)
def test_leaving_out_a_group_without_spread_changes_no_other_weight(config):
    lengths = [2, 5, 3]
    everything = weights_of(lengths, config)
    without_second = weights_of(lengths, config, counted=[True] * 3, kept=[True, False, True])
    assert without_second == [everything[0], 0.0, everything[2]]


@pytest.mark.parametrize("config", ALL)
def test_a_masked_completion_is_as_if_it_had_not_been_sampled(config):
    masked = weights_of([2, 5, 3], config, counted=[True, False, True])
    assert masked == [*weights_of([2, 3], config)[:1], 0.0, *weights_of([2, 3], config)[1:]]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8))
def test_means_give_weights_that_sum_to_one(lengths):
    for config in (TokenMean(), SequenceMeanTokenMean()):
        assert np.dot(weights_of(lengths, config), lengths) == pytest.approx(1)


@pytest.mark.parametrize("config", ALL)
def test_empty_completions_and_empty_steps_are_not_an_error(config):
    assert weights_of([0, 2], config)[0] == 0.0
    assert weights_of([0], config) == [0.0]
    assert weights_of([2], config, counted=[False]) == [0.0]
    assert weights_of([], config) == []


def test_keeping_a_row_that_is_not_counted_is_refused():
    with pytest.raises(ValueError, match="must be counted"):
        weights_of([2, 2], TokenMean(), counted=[True, False], kept=[True, True])


def test_the_constant_of_a_token_sum_must_be_given():
    with pytest.raises(ValidationError, match="normaliser"):
        TypeAdapter(AggregationConfig).validate_python({"kind": "sequence_mean_token_sum"})
