"""Metrics of a step's rollouts and advantages."""

import pytest

from cooper_audit.run.watch_rules import Watch
from cooper_base.data.verdict import Verdict
from cooper_rl.policy.advantages import unverified_advantage
from cooper_rl.records import Ragged

RIGHT_AND_WRONG: list[Verdict] = ["wrong", "correct"]
ALL_WRONG: list[Verdict] = ["wrong", "unparsed", "timeout"]


@pytest.mark.parametrize(
    ("advantages", "verdicts", "share"),
    [
        ([[-1.0, 1.0], [-1.0, -1.0, 2.0]], [RIGHT_AND_WRONG, ALL_WRONG], 4 / 6),
        ([[-1.0, 1.0], [0.0, 0.0, 0.0]], [RIGHT_AND_WRONG, ALL_WRONG], 0.0),
        ([[-1.0, -1.0, 2.0]], [ALL_WRONG], 1.0),
        ([[0.0, 0.0]], [RIGHT_AND_WRONG], None),
        ([], [], None),
    ],
)
def test_the_share_of_advantage_where_the_rule_accepts_nothing(advantages, verdicts, share):
    found = unverified_advantage(Ragged.of(advantages), verdicts)
    assert found == ({} if share is None else {"policy/unverified_advantage": pytest.approx(share)})


def test_a_policy_that_goes_on_learning_from_such_groups_is_warned_of():
    """At the start a reward model does not know the policy yet, and many groups have no right answer."""
    watch = Watch([])
    fired = [step for step in range(1, 31) if watch.observe(step, {"policy/unverified_advantage": 0.5})[0]]
    assert fired == [13]
    watch = Watch([])
    shares = [0.5] * 10 + [0.3, 0.3, 0.0, 0.2, 0.3, 0.3, 0.1]
    assert not any(watch.observe(step, {"policy/unverified_advantage": v})[0] for step, v in enumerate(shares, 1))
