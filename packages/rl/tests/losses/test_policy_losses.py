"""Policy losses against hand-computed values."""

from dataclasses import replace

import pytest
import torch
from policy_loss_cases import one_row, random_inputs  # pyright: ignore[reportMissingImports]
from pydantic import TypeAdapter

from cooper_lab.designs.cispo import CISPO
from cooper_lab.designs.gspo import GSPO
from cooper_rl.engines.losses.policy import (
    KLConfig,
    KLKind,
    PolicyLossConfig,
    PolicyObjective,
    PPOClip,
    kl_estimate,
    policy_loss,
)


@pytest.mark.parametrize(
    ("config", "ratio", "advantage", "expected"),
    [
        (PPOClip(), 1.1, 2.0, -2.2),  # inside the clip range
        (PPOClip(), 1.5, 2.0, -2.4),  # clipped at 1.2
        (PPOClip(clip_high=0.28), 1.5, 2.0, -2.56),  # DAPO's clip-higher
        (PPOClip(), 0.5, 2.0, -1.0),  # a good token that became unlikely is not clipped
        (PPOClip(), 0.5, -2.0, 1.6),  # clipped at 0.8
        (PPOClip(clip_low=0.4), 0.5, -2.0, 1.2),
        (PPOClip(), 5.0, -2.0, 10.0),  # unbounded above for a bad token
    ],
)
def test_ppo_clip_of_one_token(config, ratio, advantage, expected):
    assert policy_loss(one_row([ratio], [advantage]), config).loss.item() == pytest.approx(expected)


def test_tokens_are_weighted_and_summed():
    inputs = one_row([1.1, 1.5, 0.5], [2.0, 2.0, -2.0], weights=[0.5, 0.25, 0.0])
    assert policy_loss(inputs, PPOClip()).loss.item() == pytest.approx(0.5 * -2.2 + 0.25 * -2.4)


def test_gspo_ratio_is_the_geometric_mean_over_the_completion():
    # (4 * 1/2 * 1/2 * 2)^(1/4) = 2^(1/4)
    inputs = one_row([4.0, 0.5, 0.5, 2.0], [1.0] * 4, weights=[0.25] * 4)
    wide = policy_loss(inputs, GSPO(clip_low=1.0, clip_high=1.0))
    assert wide.loss.item() == pytest.approx(-(2**0.25))
    assert wide.metric_sums["ratio"].item() == pytest.approx(4 * 2**0.25)
    assert wide.metric_sums["clip_fraction"].item() == 0
    clipped = policy_loss(inputs, GSPO())
    assert clipped.loss.item() == pytest.approx(-1.0004)
    assert clipped.metric_sums["clip_fraction"].item() == 4


@pytest.mark.parametrize("kind", ["k1", "k2", "k3"])
def test_kl_term_is_added_with_its_coefficient_and_the_weights(kind: KLKind):
    inputs = random_inputs(spread=0.3, reference=True)
    assert inputs.reference_logprobs is not None
    plain = policy_loss(inputs, PPOClip())
    with_kl = policy_loss(inputs, PPOClip(), KLConfig(kind=kind, coefficient=0.25))
    estimate = torch.where(inputs.mask, kl_estimate(kind, inputs.logprobs, inputs.reference_logprobs), 0.0)
    torch.testing.assert_close(with_kl.loss - plain.loss, 0.25 * (inputs.weights * estimate).sum())


def test_kl_in_the_reward_leaves_the_loss_alone():
    inputs = random_inputs(spread=0.3, reference=True)
    in_reward = policy_loss(inputs, PPOClip(), KLConfig(coefficient=1.0, where="reward"))
    assert in_reward.loss == policy_loss(inputs, PPOClip()).loss
    policy_loss(replace(inputs, reference_logprobs=None), PPOClip(), KLConfig(where="reward"))


def test_a_kl_term_without_reference_is_refused():
    with pytest.raises(ValueError, match="reference_logprobs"):
        policy_loss(random_inputs(spread=0.1), PPOClip(), KLConfig())


def test_metrics_of_a_hand_computed_row():
    inputs = one_row([1.5, 0.5, 1.0, 5.0], [1.0, -1.0, 1.0, -1.0])
    sums = policy_loss(inputs, PPOClip()).metric_sums
    assert sums["clip_fraction"].item() == 2
    assert sums["ratio"].item() == pytest.approx(8.0)
    ratios = torch.tensor([1.5, 0.5, 1.0, 5.0], dtype=torch.float64)
    assert sums["kl_to_old"].item() == pytest.approx((ratios - 1 - ratios.log()).sum().item())
    assert sums["mismatch_kl"].item() == 0
    assert not any(value.requires_grad for value in sums.values())


def test_every_kind_is_reachable_from_a_config_file():
    for config in (PPOClip(), GSPO(), CISPO()):
        assert TypeAdapter(PolicyLossConfig).validate_python({"kind": config.kind}) == config
    objective = PolicyObjective.model_validate({"loss": {"kind": "gspo"}, "kl": {"kind": "k2"}})
    assert objective == PolicyObjective(loss=GSPO(), kl=KLConfig(kind="k2"))
