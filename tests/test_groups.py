"""Tests that share what is expensive run in one worker: else Ray, services and packages start in each of them."""

import pytest


@pytest.fixture(scope="module")
def shared() -> None: ...


@pytest.mark.xdist_group("named")
def test_a_named_group_is_kept(request):
    assert request.node.nodeid.endswith("@named") == _in_groups(request), "install the versions of constraints.txt"


def test_tests_with_a_fixture_of_their_file_are_one(request, shared):
    assert request.node.nodeid.endswith("@tests/test_groups.py") == _in_groups(request)


def test_others_go_where_there_is_room(request):
    assert "@" not in request.node.nodeid


def _in_groups(request: pytest.FixtureRequest) -> bool:
    """Whether this is a worker of `--dist loadgroup`."""
    return hasattr(request.config, "workerinput") and bool(request.config.getoption("loadgroup"))
