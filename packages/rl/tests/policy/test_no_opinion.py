"""An answer on which there is no opinion (its reward is NaN) is as if it had not been sampled."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from cooper_base.data.problem import Problem
from cooper_rl.policy.advantages import (
    ADVANTAGES,
    AdvantageConfig,
    Completions,
    TokenCredit,
    estimate,
    token_credit,
    usable_groups,
)
from cooper_rl.policy.estimators import DrGRPO
from cooper_rl.policy.update import finite_rewards
from cooper_rl.records import Column, Ragged, Rollouts

NEEDED = {"drpo": {"max_tokens": 50}, "without_outliers": {"max_z": 1.0}}
"""Settings without a default. An estimator that is new, and has such settings, needs a line here."""
ESTIMATORS = [record(**NEEDED.get(kind, {})) for kind, record in ADVANTAGES.records.items()]

answer = st.one_of(st.just(math.nan), st.floats(-1, 1, width=32))
step = st.lists(st.lists(answer, min_size=1, max_size=5), min_size=1, max_size=4)


@given(rewards=step)
@pytest.mark.parametrize("config", ESTIMATORS, ids=lambda config: ADVANTAGES.kind_of(config))
def test_the_others_have_the_advantages_of_the_group_without_it(config: AdvantageConfig, rewards):
    given_all = Ragged.of(rewards, torch.float64)
    kept = ~given_all.flat.isnan()
    places = torch.arange(1.0, len(given_all.flat) + 1, dtype=torch.float64)
    first = given_all.like(0.25 * given_all.flat + places % 3)
    second = given_all.like(given_all.flat.nan_to_num(nan=7.0) - first.flat)  # an opinion of one reward is not enough
    read = Completions(given_all.like(places % 7 + 1), given_all.like(-places), ((1.0, first), (1.0, second)))
    found = estimate(given_all, config, completions=read).advantages
    expected = estimate(given_all.keep(kept), config, completions=read.keep(kept)).advantages
    assert found.flat[kept].tolist() == expected.flat.tolist()
    assert found.flat[~kept].tolist() == [0.0] * int((~kept).sum())


@pytest.mark.parametrize("config", ESTIMATORS, ids=lambda config: ADVANTAGES.kind_of(config))
@pytest.mark.parametrize("group", [[0.7, math.nan, math.nan], [math.nan] * 3, []])
def test_fewer_than_two_opinions_give_no_advantage(config, group):
    rewards = Ragged.of([group, [1.0, 0.0]], torch.float64)
    ones = rewards.like(torch.ones(len(rewards.flat)))
    read = Completions(ones, ones, ((1.0, rewards),))
    for usable in (None, torch.tensor([True, True])):  # whatever the caller takes for usable
        found = estimate(rewards, config, usable, read).advantages
        assert found.rows()[0] == [0.0] * len(group)
        assert all(found.rows()[1])
    assert usable_groups(rewards, 0.0).tolist() == [False, True]


@given(rewards=step)
def test_an_infinite_reward_costs_its_group_and_none_of_the_opinions_elsewhere(rewards):
    broken = Ragged.of([*rewards, [1.0, math.inf, math.nan]], torch.float64)
    finite = finite_rewards(broken).rows()
    assert str(finite[:-1]) == str(Ragged.of(rewards, torch.float64).rows())
    assert str(finite[-1]) == "[0.0, 0.0, nan]"


class CreditsByGroup(DrGRPO):
    """A user's estimator that credits every token with the number of completions that it sees of the problem."""

    def token_credit(self, model, rollouts, decode):
        sizes = np.repeat(rollouts.group_sizes, rollouts.group_sizes)
        lengths = rollouts.token_ids.lengths
        return TokenCredit([np.full(n, float(size)) for n, size in zip(lengths, sizes, strict=True)], {"seen": 1.0})


@given(kept=st.lists(st.booleans(), min_size=5, max_size=5))
def test_no_credit_of_tokens_reads_an_answer_without_an_opinion(kept):
    assume(any(kept))
    lengths = [1, 2, 3, 2, 1]
    rollouts = Rollouts(
        problems=[Problem("a", "?", "1"), Problem("b", "?", "1")],
        prompts=Column.of([[1], [2]]),
        group_sizes=np.array([3, 2]),
        token_ids=Column.of([[7] * n for n in lengths]),
        logprobs=np.zeros(sum(lengths)),
        stopped=np.ones(5, bool),
        texts=["a", "b", "c", "d", "e"],
        versions=np.zeros(5, int),
    )
    rewards = Ragged(torch.tensor([1.0 if keep else math.nan for keep in kept]), (3, 2))
    credit = token_credit(CreditsByGroup(), None, rollouts, rewards, str)
    assert credit is not None
    seen = [sum(kept[:3])] * 3 + [sum(kept[3:])] * 2
    expected = [[float(count)] * n if keep else [0.0] * n for count, n, keep in zip(seen, lengths, kept, strict=True)]
    assert [row.tolist() for row in credit.advantages] == expected
    assert list(rollouts.keep(np.array(kept)).texts) == [t for t, keep in zip("abcde", kept, strict=True) if keep]
