"""Outlying advantages become 0, and nothing else changes."""

import pytest
import torch
from shelf.outliers import without_outliers

from cooper_rl import InputError, build_config
from cooper_rl.policy.advantages import GRPO
from cooper_rl.records import Ragged

ALL = torch.ones(1, dtype=torch.bool)


def test_one_outlier_in_ten_thousand_is_zeroed():
    flat = torch.randn(10_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).clamp(-2, 2)
    flat[17] = 40.0
    found, share = without_outliers(Ragged(flat, (10_000,)), ALL, 3)
    assert found.flat[17] == 0
    assert share.item() == 1e-4
    assert torch.equal(torch.cat([found.flat[:17], found.flat[18:]]), torch.cat([flat[:17], flat[18:]]))


def test_ten_completions_can_have_no_outlier_and_eleven_can():
    for size, zeroed in ((10, 0), (11, 1)):
        flat = torch.zeros(size, dtype=torch.float64)
        flat[0] = 1e6
        found, _ = without_outliers(Ragged(flat, (size,)), ALL, 3)
        assert int((found.flat != flat).sum()) == zeroed


def test_groups_without_usable_spread_do_not_count():
    numbers = Ragged(torch.cat([torch.ones(20).double(), torch.zeros(200).double()]), (20, 200))
    usable = torch.tensor([True, False])
    assert torch.equal(without_outliers(numbers, usable, 3)[0].flat, numbers.flat)  # beside 200 zeros, z would be 3.2
    assert without_outliers(numbers, torch.zeros(2, dtype=torch.bool), 3)[1].item() == 0


def run(estimator: str, z: float, n: int, **algorithm):
    settings = {
        "advantages": {"kind": "shelf.outliers:WithoutOutliers", "max_z": z, "outcome": {"kind": estimator}},
        **algorithm,
    }
    shape = {"problems_per_step": 4, "rollout": {"n": n}, "algorithm": settings}
    return build_config({"kind": "rule", "policy": {"model": "m"}, "problems": {"source": "arithmetic"}, **shape})


def test_a_bound_that_no_advantage_of_a_group_can_exceed_is_refused():
    """sqrt(7) = 2.646: where one of eight is right in every group, grpo gives it that z."""
    rewards = torch.tensor([1.0] + 7 * [0.0]).double().repeat(4)
    found = GRPO().advantages(Ragged(rewards, (8, 8, 8, 8)))
    shares = [without_outliers(found, torch.ones(4, dtype=torch.bool), z)[1].item() for z in (2.64, 2.65)]
    assert shares == [1 / 8, 0]
    run("grpo", 2.64, 8)
    with pytest.raises(InputError, match=r"8 completions of a group .* sqrt\(8 - 1\) = 2\.65 .* \(at least 11\)"):
        run("grpo", 3.0, 8)
    with pytest.raises(InputError, match="3 cannot act"):
        run("grpo", 3.0, 10)
    run("grpo", 3.0, 11)


def test_elsewhere_the_bound_is_that_of_all_completions_of_a_step():
    run("dr_grpo", 3.0, 8)
    run("grpo", 3.0, 8, min_spread=0.0)  # a group without spread may have advantages near 0
    with pytest.raises(InputError, match=r"32 completions of a step is further than sqrt\(32 - 1\) = 5\.57"):
        run("dr_grpo", 6.0, 8)
