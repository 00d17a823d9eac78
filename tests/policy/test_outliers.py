"""Outlying advantages become 0, and nothing else changes."""

import torch

from cooper_rl.policy.advantages import without_outliers
from cooper_rl.rollouts import Ragged

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
