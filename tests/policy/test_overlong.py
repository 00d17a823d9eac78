"""DAPO's soft overlong punishment."""

import pytest
import torch

from cooper_rl.errors import InputError
from cooper_rl.policy.overlong import OverlongConfig, overlong_penalty


def test_penalty_grows_linearly_over_the_buffer():
    config = OverlongConfig(kind="penalise", buffer=4, factor=0.5)
    lengths = torch.tensor([[0, 6], [7, 8], [10, 12]])
    expected = [[0.0, 0.0], [-0.125, -0.25], [-0.5, -0.5]]
    assert overlong_penalty(lengths, 10, config).tolist() == expected


def test_papers_setting():
    # 16384 expected tokens and a cache of 4096: half-way through the cache costs 1/2.
    config = OverlongConfig(kind="penalise", buffer=4096)
    lengths = torch.tensor([16384, 16384 + 2048, 20480, 20481])
    assert overlong_penalty(lengths, 20480, config).tolist() == [0.0, -0.5, -1.0, -1.0]


def test_a_buffer_longer_than_the_limit_is_refused_with_the_remedy():
    with pytest.raises(InputError, match="at most 32"):
        overlong_penalty(torch.tensor([3]), 32, OverlongConfig(kind="penalise", buffer=33))
