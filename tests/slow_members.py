"""A parametrised family of which only the first members run in the fast suite."""

from collections.abc import Iterable
from typing import Any

import pytest


def first_fast(members: Iterable[Any], fast: int = 1) -> list[Any]:
    """The members for `pytest.mark.parametrize`; all but the first `fast` are slow. A tuple has several arguments."""
    parameters = [pytest.param(*member) if isinstance(member, tuple) else pytest.param(member) for member in members]
    slow = [pytest.param(*parameter.values, marks=pytest.mark.slow) for parameter in parameters[fast:]]
    return [*parameters[:fast], *slow]
