"""The fixture `assert_not_gameable`, which pytest finds where this package is installed."""

from collections.abc import Callable

import pytest


@pytest.fixture
def assert_not_gameable() -> Callable[..., None]:
    """Fails a test with the worst exploit if a reward pays for wrong answers:

    def test_my_reward(assert_not_gameable):
        assert_not_gameable(my_reward)
    """
    from cooper_audit.attack.asserting import assert_not_gameable  # noqa: PLC0415 - only for tests that ask for it

    return assert_not_gameable
