"""DAPO's soft overlong punishment."""

import pytest
import torch
from pydantic import ValidationError

from cooper_lab.designs.bounds import Overlong


def test_penalty_grows_linearly_over_the_buffer():
    shaping = Overlong(max_tokens=10, buffer=4, factor=0.5)
    lengths = torch.tensor([[0, 6], [7, 8], [10, 12]])
    assert shaping.penalty(lengths).tolist() == [[0.0, 0.0], [-0.125, -0.25], [-0.5, -0.5]]


def test_the_papers_setting():
    # 16384 expected tokens and a cache of 4096: half-way through the cache costs 1/2.
    shaping = Overlong(max_tokens=20480, buffer=4096)
    lengths = torch.tensor([16384, 16384 + 2048, 20480, 20481])
    assert shaping.penalty(lengths).tolist() == [0.0, -0.5, -1.0, -1.0]


def test_a_buffer_longer_than_the_limit_is_refused():
    with pytest.raises(ValidationError, match="buffer: 33 exceeds max_tokens: 32"):
        Overlong(max_tokens=32, buffer=33)
