"""Advantages against values worked out by hand."""

from typing import Annotated, Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from shelf.maxrl import MaxRL

from cooper_base.config.base import Config
from cooper_lab.designs.gspo import GSPO
from cooper_rl import InputError, build_config
from cooper_rl.policy.advantages import ADVANTAGES, EPS, GRPO, Completions, advantage_shares, estimate, usable_groups
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.policy.estimators import GDPO, RLOO, DrGRPO, ReinforcePPBaseline
from cooper_rl.records import Ragged

ALL = [GRPO(), DrGRPO(), RLOO(), ReinforcePPBaseline(), MaxRL()]
ONE_OF_FOUR = torch.tensor([[1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)


def ragged(rewards):
    """From [P, N]."""
    return Ragged.of(list(rewards))


def of_rows(rewards, config, usable=None):
    """From [P, N] to [P, N]."""
    return estimate(ragged(rewards), config, usable).advantages.flat.reshape(rewards.shape)


def plain(config, rewards, centred_of_step):
    """One group's advantages, written out in plain Python."""
    n = len(rewards)
    mean = sum(rewards) / n
    centred = [r - mean for r in rewards]
    std = (sum(c * c for c in centred) / (n - 1)) ** 0.5
    root_mean_square = (sum(c * c for c in centred_of_step) / len(centred_of_step)) ** 0.5
    return {
        "grpo": lambda: [c / (std + 1e-6) for c in centred],
        "dr_grpo": lambda: centred,
        "rloo": lambda: [r - (sum(rewards) - r) / (n - 1) for r in rewards],
        "reinforce_pp_baseline": lambda: [c / (root_mean_square + 1e-6) for c in centred],
        "shelf.maxrl:MaxRL": lambda: [max(1 - n, min(n - 1, c / mean)) if mean > 0 else 0.0 for c in centred],
    }[ADVANTAGES.kind_of(config)]()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        # mean 1/4; deviations 3/4, -1/4 ...; std with N - 1: sqrt((9/16 + 3/16) / 3) = 1/2
        (GRPO(), [1.5, -0.5, -0.5, -0.5]),
        (DrGRPO(), [0.75, -0.25, -0.25, -0.25]),
        # the others' means: 0 for the success, 1/3 for the failures
        (RLOO(), [1.0, -1 / 3, -1 / 3, -1 / 3]),
        # root mean square of the deviations: sqrt((9/16 + 3/16) / 4) = sqrt(3) / 4
        (ReinforcePPBaseline(), [3**0.5, -(3**-0.5), -(3**-0.5), -(3**-0.5)]),
        # one success in four: its weight is N / K = 4, minus the control variate 1
        (MaxRL(), [3.0, -1.0, -1.0, -1.0]),
    ],
)
def test_hand_computed_group(config, expected):
    exact = torch.tensor([expected], dtype=torch.float64)
    torch.testing.assert_close(of_rows(ONE_OF_FOUR, config), exact, rtol=3 * EPS, atol=0.0)


def test_grpo_adds_eps_to_the_standard_deviation():
    torch.testing.assert_close(of_rows(ONE_OF_FOUR, GRPO())[0, 0].item(), 0.75 / (0.5 + EPS))


ALL_WRONG = torch.tensor([[0.02, 0.0005, 0.0005, 0.0005, 0.0005, 0.0005, 0.0005, 0.0005]], dtype=torch.float64)


def test_a_floor_under_the_std_keeps_a_group_without_right_answer_from_teaching_in_full():
    assert usable_groups(ragged(ALL_WRONG), min_spread=0.01).all()
    assert of_rows(ALL_WRONG, GRPO())[0, 0].item() == pytest.approx(2.4745, abs=1e-4)
    with_floor = of_rows(ALL_WRONG, GRPO(std_floor=0.1))[0]
    # mean (0.02 + 7 * 0.0005) / 8 = 0.0029375; std 0.0195 / sqrt(8) = 0.0069, so the divisor is 0.1
    expected = torch.tensor([0.170625, *[-0.024375] * 7], dtype=torch.float64)
    torch.testing.assert_close(with_floor, expected, rtol=20 * EPS, atol=0)


def test_a_floor_below_the_std_changes_nothing():
    # One right answer among eight has the smallest std of a rule's rewards, 1 / sqrt(8) = 0.354.
    rewards = torch.tensor([[1.0, *[0.0] * 7], [1.0] * 4 + [0.0] * 4], dtype=torch.float64)
    assert of_rows(rewards, GRPO(std_floor=0.35)).tolist() == of_rows(rewards, GRPO()).tolist()
    both = torch.cat([rewards, ALL_WRONG])
    assert of_rows(both, GRPO(std_floor=0.35))[:2].tolist() == of_rows(rewards, GRPO()).tolist()


def test_reinforce_pp_uses_one_standard_deviation_for_all_usable_groups():
    rewards = torch.tensor([[2.0, 0.0], [0.5, 0.5], [5.0, 1.0]], dtype=torch.float64)
    # deviations 1, 1 and 2, 2; the constant group must not dilute them: sqrt((1 + 1 + 4 + 4) / 4)
    std = 2.5**0.5
    expected = torch.tensor([[1, -1], [0, 0], [2, -2]], dtype=torch.float64) / std
    torch.testing.assert_close(of_rows(rewards, ReinforcePPBaseline()), expected, rtol=EPS, atol=0)


@pytest.mark.parametrize("rewards", [[0.0, 0.0, -1.0], [-0.2, 0.1, 0.1]])
def test_maxrl_learns_nothing_from_a_group_without_success(rewards):
    assert of_rows(torch.tensor([rewards]), MaxRL()).tolist() == [[0.0, 0.0, 0.0]]


def test_maxrl_stays_bounded_when_a_penalty_brings_the_mean_near_zero():
    result = of_rows(torch.tensor([[1.0, -0.5, -0.4999]]), MaxRL())
    assert result.tolist() == [[2.0, -2.0, -2.0]]


@pytest.mark.parametrize("config", ALL)
def test_noise_below_the_threshold_gives_exactly_zero(config):
    rewards = torch.tensor([[0.9, 0.9004, 0.9002], [0.1, 0.9, 0.5]])
    usable = usable_groups(ragged(rewards), min_spread=0.01)
    assert usable.tolist() == [False, True]
    result = of_rows(rewards, config, usable)
    assert result[0].tolist() == [0.0, 0.0, 0.0]
    assert (result[1] != 0).any()


@pytest.mark.parametrize("config", ALL)
def test_constant_rewards_and_single_completions_give_exactly_zero(config):
    assert of_rows(torch.full((2, 3), 0.1), config).count_nonzero() == 0
    assert of_rows(torch.tensor([[0.3], [0.7]]), config).tolist() == [[0.0], [0.0]]


def test_a_spread_equal_to_the_threshold_is_not_usable():
    assert usable_groups(ragged(torch.tensor([[0.0, 0.5], [0.0, 0.5001]])), min_spread=0.5).tolist() == [False, True]


@pytest.mark.parametrize("bad", [float("-inf"), float("inf")])
def test_infinite_rewards_are_refused_with_their_group(bad):
    rewards = torch.tensor([[0.0, 1.0], [bad, 1.0]])
    with pytest.raises(ValueError, match=r"groups \[1\]"):
        usable_groups(ragged(rewards), 0.0)
    with pytest.raises(ValueError, match=r"groups \[1\]"):
        of_rows(rewards, GRPO(), torch.tensor([True, False]))


@given(
    rewards=st.lists(st.lists(st.floats(0, 1, width=32), min_size=4, max_size=4), min_size=1, max_size=4),
    config=st.sampled_from([GRPO(), DrGRPO(), RLOO(), ReinforcePPBaseline(), MaxRL()]),
)
def test_advantages_of_every_group_sum_to_zero_and_follow_the_rewards(rewards, config):
    rewards = torch.tensor(rewards)
    result = of_rows(rewards, config)
    assert result.dtype == rewards.dtype
    torch.testing.assert_close(result.sum(1), torch.zeros(len(rewards)), atol=1e-5, rtol=0)
    order = rewards.argsort(dim=1, stable=True)
    assert (result.gather(1, order).diff(dim=1) >= 0).all()


def gdpo(rewards, *summands):
    """One group's advantages under GDPO."""
    parts = tuple((weight, Ragged.of([part], torch.float64)) for weight, part in summands)
    group = Ragged.of([rewards], torch.float64)
    usable = usable_groups(group, 0.0, parts)
    return estimate(group, GDPO(), usable, Completions(group, group, parts)).advantages.rows()[0]


def test_gdpo_by_hand():
    # Each reward is +-1/2 or +-5 around its mean, so z = +-sqrt(3)/2 (std with N - 1: sqrt(1/3), 10 sqrt(1/3)).
    # The sums are -sqrt(3), 0, sqrt(3), 0, with std sqrt(6/3); summed first, the second reward would decide alone.
    found = gdpo([0, 1, 11, 10], (1.0, [0, 1, 1, 0]), (1.0, [0, 0, 10, 10]))
    assert found == pytest.approx([-(1.5**0.5), 0, 1.5**0.5, 0], abs=1e-3)
    # With weights 1 and 3 the sums are sqrt(3)/2 times -4, -2, 4, 2: std sqrt(3)/2 sqrt(40/3).
    weighted = gdpo([0, 1, 31, 30], (1.0, [0, 1, 1, 0]), (3.0, [0, 0, 10, 10]))
    assert weighted == pytest.approx([x / (40 / 3) ** 0.5 for x in (-4, -2, 4, 2)], abs=1e-3)


def test_gdpo_tells_completions_apart_whose_rewards_have_the_same_sum():
    found = gdpo([1, 1, 1], (1.0, [1, 1, 0]), (1.0, [0, 0, 1]))  # both std are equal, so the sums are 0
    assert found == pytest.approx([0, 0, 0], abs=1e-9)
    found = gdpo([1, 1, 1], (1.0, [1, 1, 0]), (2.0, [0, 0, 0.5]))
    assert found[0] == found[1] < 0 < found[2]


def test_gdpo_normalises_over_the_step_and_leaves_out_a_reward_without_opinion_on_a_group():
    rewards = Ragged.of([[1.0, 0.0], [5.0, 3.0]], torch.float64)
    nan = float("nan")
    parts = (
        (1.0, Ragged.of([[1.0, 0.0], [nan, nan]], torch.float64)),
        (1.0, Ragged.of([[0, 0], [5, 3]], torch.double)),
    )
    found = estimate(rewards, GDPO(), completions=Completions(rewards, rewards, parts)).advantages.rows()
    # z is +-sqrt(1/2) in both groups; over the step the std is sqrt(4 / 2 / 3)
    assert found == [pytest.approx([0.75**0.5, -(0.75**0.5)], abs=1e-3)] * 2


def test_each_reward_s_share_of_the_advantages():
    """Summed, the reward of large scale makes nearly all; normalised, each what its weight says."""
    parts = ((1.0, Ragged.of([[0, 1, 1, 0]], torch.float64)), (3.0, Ragged.of([[0, 0, 10, 10]], torch.float64)))
    assert advantage_shares(GRPO(), parts) == {
        "policy/advantage_share_1": pytest.approx(0.5 / 15.5),
        "policy/advantage_share_2": pytest.approx(15 / 15.5),
    }
    assert [*advantage_shares(GDPO(), parts).values()] == pytest.approx([0.25, 0.75], abs=1e-3)
    none = Ragged.of([[float("nan")] * 4], torch.float64)
    assert [*advantage_shares(GDPO(), (*parts, (1.0, none))).values()][2] == 0
    assert advantage_shares(GRPO(), parts[:1]) == advantage_shares(GRPO(), ((1.0, none), (1.0, none))) == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shaping": [{"kind": "clip", "low": 0.0}]}, "shaping has no effect"),
        ({"algorithm": {"advantages": {"kind": "gdpo"}, "kl": {"where": "reward"}}}, "kl.where: loss"),
    ],
)
def test_gdpo_refuses_what_would_change_the_sum_alone(change, words):
    settings = {"kind": "rule", "policy": {"model": "m"}, "problems": {"source": "arithmetic"}}
    with pytest.raises(InputError, match=words):
        build_config({**settings, "algorithm": {"advantages": {"kind": "gdpo"}}, **change})


GROUPS = [[1.0, 0.0, 0.25, 0.5], [0.0, 1.0], [0.5, 0.75, -0.5], [0.3, 0.3, 0.3]]
"""Groups of 4, 2 and 3, and one without spread."""


@pytest.mark.parametrize("config", ALL)
def test_groups_may_differ_in_size(config):
    centred_of_step = [r - sum(group) / len(group) for group in GROUPS[:3] for r in group]
    expected = [plain(config, group, centred_of_step) for group in GROUPS[:3]]
    found = estimate(Ragged.of(GROUPS, torch.float64), config).advantages
    assert found.sizes == (4, 2, 3, 3)
    assert found.rows()[:3] == [pytest.approx(row, abs=1e-12) for row in expected]
    assert found.rows()[3] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("config", ALL)
def test_groups_of_one_answer_or_none_have_no_advantage(config):
    rewards = Ragged.of([[0.7], [], [1.0, 0.0]], torch.float64)
    assert usable_groups(rewards, 0.0).tolist() == [False, False, True]
    found = estimate(rewards, config).advantages
    assert found.rows()[:2] == [[0.0], []]
    assert found.rows()[2] == of_rows(torch.tensor([[1.0, 0.0]], dtype=torch.float64), config)[0].tolist()


def test_every_kind_is_reachable_from_a_config_file():
    adapter = TypeAdapter(Annotated[Any, ADVANTAGES])
    for config in ALL:
        assert adapter.validate_python({"kind": ADVANTAGES.kind_of(config)}) == config


class OnlySettings(Config):
    """It has the method, but not the base with the defaults."""

    def advantages(self, rewards, completions=None):
        return rewards


def test_an_estimator_without_the_base_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"derive it from cooper_rl\.AdvantageConfig"):
        TypeAdapter(Annotated[Any, ADVANTAGES]).validate_python(OnlySettings())


class CreditsTheFirstToken(DrGRPO):
    """An estimator of a user's that tells tokens apart."""

    def token_credit(self, models, rollouts, decode):
        return None


def test_every_estimator_that_credits_tokens_is_refused_with_one_ratio_per_completion():
    with pytest.raises(ValueError, match="this loss has one ratio per completion"):
        AlgorithmConfig(advantages=CreditsTheFirstToken(), loss=GSPO())
    assert AlgorithmConfig(advantages=DrGRPO(), loss=GSPO()).loss == GSPO()
