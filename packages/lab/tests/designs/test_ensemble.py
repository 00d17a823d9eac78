"""Ensembles of reward models against numbers worked out by hand."""

from typing import Any

import pytest
import torch
from shelf.ensemble import BRME, UWO, Mean, Median, Min, SoftMin

SCORES = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)

KNOWN: list[tuple[Any, float]] = [
    (Mean(), 2.0),
    (Median(), 2.0),
    (Min(), 1.0),
    (UWO(weight=1.0), 4 / 3),
    (UWO(weight=1.0, correction=1), 1.0),
    (UWO(weight=1.0, correction=1, root=True), 1.0),
    (UWO(weight=3.0, root=True), 2 - 3 * (2 / 3) ** 0.5),
    (SoftMin(temperature=0.01), 1.010986),
    (SoftMin(temperature=0.1), 1.109857),
    (SoftMin(temperature=1.0), 1.691006),
    (SoftMin(temperature=100.0), 1.996667),
    (BRME(trust=0.25, nominal=2), 1.5),
    (BRME(trust=1.0, nominal=1), 2.0),
    (BRME(trust=0.0, nominal=1), 1.0),
]


@pytest.mark.parametrize(("combine", "expected"), KNOWN)
def test_combinations_have_their_known_values(combine, expected):
    assert combine.combine(SCORES).item() == pytest.approx(expected, abs=1e-6)
    shuffled = combine.combine(torch.cat([SCORES[[2, 0, 1]], SCORES], dim=1)) if not isinstance(combine, BRME) else None
    if shuffled is not None:  # the order of the members does not matter
        assert shuffled[0].item() == pytest.approx(shuffled[1].item())


@pytest.mark.parametrize("combine", [Mean(), Median(), Min(), UWO(), SoftMin(), BRME()])
def test_one_member_is_the_identity_and_a_diverged_one_is_not_hidden(combine):
    assert combine.combine(SCORES[:1]).item() == pytest.approx(1.0)
    assert combine.combine(torch.tensor([[0.5, 0.5], [0.5, torch.nan]]).double()).isnan().tolist() == [False, True]


def test_the_median_of_an_even_number_lies_between_the_middle_two():
    assert Median().combine(torch.tensor([[0.0], [0.2], [0.4], [1.0]]).double()).item() == pytest.approx(0.3)


def test_soft_min_is_uwo_to_second_order():
    scores = torch.tensor([[0.50], [0.52], [0.49]], dtype=torch.float64)
    assert SoftMin(temperature=0.5).combine(scores).item() == pytest.approx(
        UWO(weight=1.0).combine(scores).item(), abs=1e-6
    )
