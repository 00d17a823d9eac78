"""When watch rules fire, and which default rules remain when a user adds rules."""

import math

import pytest
from pydantic import ValidationError

from cooper_audit.run.watch_rules import DEFAULT_RULES, DefaultRule, Firing, Watch, WatchRule, active_rules
from cooper_rl import InputError, build_config
from cooper_rl.record.checkpoint import rollback_target


def _fired(rules, values, metric="a"):
    """Steps (from 1) at which rules on one metric fire."""
    watch = Watch([DefaultRule(metric=metric, advice="", **rule) for rule in rules])
    fired = []
    for step, value in enumerate(values, 1):
        firings, _ = watch.observe(step, {} if value is None else {metric: value})
        fired += [(step, firing.since, firing.values) for firing in firings]
    return fired


@pytest.mark.parametrize(
    ("rule", "values", "expected"),
    [
        ({"above": 1}, [1, 1.5], [(2, 2, [1.5])]),
        ({"below": 1}, [1, 0.5], [(2, 2, [0.5])]),
        ({"above": 1, "below": 0}, [0, -1], [(2, 2, [-1])]),
        ({"above": 1, "patience": 2}, [2, 0, 2, 3], [(4, 3, [2, 3])]),
        ({"above": 1, "patience": 2}, [2, None, 3], [(3, 1, [2, 3])]),
        ({"above": 1, "patience": 2}, [2, 2, 2, 2], [(2, 1, [2, 2])]),
        ({"above": 1, "patience": 2}, [2, 2, 0, 2, 2], [(2, 1, [2, 2]), (5, 4, [2, 2])]),
        ({"above": 1, "patience": 2, "action": "stop"}, [2, 2, 2, 2], [(2, 1, [2, 2]), (4, 3, [2, 2])]),
        ({"above": 1}, [math.inf], [(1, 1, [math.inf])]),
        ({"below": 1}, [math.inf], [(1, 1, [math.inf])]),
        ({}, [1e30, -math.inf], [(2, 2, [-math.inf])]),
        ({"above": 1, "action": "ignore"}, [2], []),
        ({"above": 1, "until": 1}, [2, 2, 0, 2], [(1, 1, [2])]),
        ({"above": 1, "until": 1}, [0, 2, 2], []),
        ({"above": 1, "start": 3, "patience": 2}, [2, 2, 2, 2], [(4, 3, [2, 2])]),
    ],
)
def test_a_rule_fires_when_its_bound_is_crossed_for_its_patience(rule, values, expected):
    assert _fired([rule], values) == expected


def test_nan_crosses_every_bound():
    assert [step for step, _, _ in _fired([{"above": 1}], [math.nan])] == [1]


def test_several_rules_may_watch_one_metric():
    rules = [{"above": 1}, {"above": 2, "action": "stop"}]
    assert [step for step, _, _ in _fired(rules, [1.5, 3])] == [1, 2]


def test_user_rules_replace_only_the_defaults_on_the_same_metric():
    own = WatchRule(metric="policy/usable_groups", below=0.5, action="stop")
    active = active_rules([own, WatchRule(metric="rule/accuracy", action="ignore")])
    assert [rule for rule in active if rule.metric == "policy/usable_groups"] == [own]
    metrics = {rule.metric for rule in DEFAULT_RULES}
    assert {rule.metric for rule in active} == metrics - {"rule/accuracy"}


@pytest.mark.parametrize(
    ("metrics", "remedies"),
    [
        ({"rollout/cut_off_rate": 1.0}, ["rollout.max_tokens", "problems.prompt.template"]),
        ({"rule/accuracy": 0.0}, ["problems.prompt.template", "\\boxed{}", "rollout.max_tokens"]),
        ({"policy/usable_groups": 0.0}, ["rollouts/000001.jsonl", "rollout.n"]),
    ],
)
def test_a_first_step_that_teaches_nothing_gives_a_warning_with_a_remedy(metrics, remedies):
    watch = Watch([])
    [firing], found = watch.observe(1, metrics)
    assert all(remedy in firing.message for remedy in remedies)
    assert found["watch/faults"] == 1
    assert watch.observe(2, metrics) == ([], {"watch/reward_hacking": 0, "watch/faults": 0})
    assert Watch([]).observe(1, dict.fromkeys(metrics, 0.5))[0] == []


def test_answers_that_cannot_be_checked_in_time_give_a_warning():
    watch = Watch([])
    fired = [watch.observe(step, {"rule/timeout": 0.05})[0] for step in (1, 2, 3)]
    assert [len(firings) for firings in fired] == [0, 0, 1]
    assert "rule.workers" in fired[2][0].message


def test_a_resumed_watch_continues_like_an_uninterrupted_one():
    rows = [{"step": step, "reward/mean": 0.5, "policy/usable_groups": 0.0 if step > 2 else 1.0} for step in range(9)]
    whole = Watch([])
    said = [whole.observe(row["step"], row) for row in rows]
    resumed = Watch([], seen=rows[:5])
    assert [resumed.observe(row["step"], row) for row in rows[5:]] == said[5:]
    assert [len(firings) for firings, _ in said] == [0, 0, 0, 0, 0, 0, 0, 1, 0]
    assert said[7][1]["watch/faults"] == said[8][1]["watch/faults"] == 1


def test_watched_metrics_that_never_appeared_are_listed():
    watch = Watch([WatchRule(metric="policy/usable_group", below=0.5), WatchRule(metric="reward/mean", below=0)])
    watch.observe(1, {"reward/mean": 0.5})
    assert watch.unseen == ["policy/usable_group"]


def test_the_message_names_metric_bound_values_start_and_remedy():
    watch = Watch([DefaultRule(metric="a", above=1, patience=2, advice="do this")])
    watch.observe(4, {"a": 2.0})
    [firing], _ = watch.observe(5, {"a": 3.0})
    assert firing.message == "a above 1 since step 4: 2, 3 (do this)"


def test_settings_that_cannot_work_are_refused(settings):
    rule = {"metric": "reward/mean", "below": 0, "action": "rollback"}
    with pytest.raises(InputError, match=r"set checkpoint\.every"):
        build_config({**settings, "watch": [rule], "checkpoint": {"every": 0}})
    with pytest.raises(ValidationError, match="patience"):
        WatchRule(metric="a", patience=0)


@pytest.mark.parametrize(
    ("actions", "checkpoints", "tried", "expected"),
    [
        (["rollback"], [10, 20], [], 20),
        (["rollback"], [10, 20, 30], [], 20),  # the fault began at step 30
        (["rollback"], [10, 20], [20], 10),
        (["rollback"], [30], [], None),
        (["rollback"], [10, 20], [5, 6, 7], None),
        (["warn"], [10, 20], [], None),
        (["rollback", "stop"], [10, 20], [], None),
    ],
)
def test_a_rollback_goes_to_the_newest_untried_checkpoint_before_the_fault(actions, checkpoints, tried, expected):
    firings = [Firing(WatchRule(metric="a", action=action), 32, 30, [1.0], []) for action in actions]
    assert rollback_target(firings, checkpoints, tried) == expected
