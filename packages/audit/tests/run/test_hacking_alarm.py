"""The alarm needs the reward to rise and something else to fall, both by more than their noise."""

import json
import math
import random

import numpy as np

from cooper_audit.run.hacking_alarm import HackingAlarm


def _signs(steps):
    """What the alarm says after each step, noise of 0.02 on everything."""
    rng = random.Random(0)
    alarm = HackingAlarm()
    noisy = [{name: value + rng.gauss(0, 0.02) for name, value in step.items()} for step in steps]
    return [alarm.observe(t, metrics) for t, metrics in enumerate(noisy, 1)]


def _step(reward, accuracy, **others):
    return {"reward/mean": reward, "rule/accuracy": accuracy, **others}


def test_it_goes_off_when_the_reward_rises_while_agreement_falls():
    healthy = [_step(0.5 + 0.01 * t, 0.5, **{"reward_model/rule_agreement": 0.95}) for t in range(10)]
    hacked = [_step(0.6 + 0.02 * t, 0.5, **{"reward_model/rule_agreement": 0.95 - 0.03 * t}) for t in range(10)]
    said = _signs(healthy + hacked)
    assert said[:10] == [[]] * 10
    assert "reward_model/rule_agreement fell" in said[-1][0]


def test_a_fall_without_a_rise_of_the_reward_is_not_hacking():
    steps = [_step(0.6, 0.5, **{"reward_model/rule_agreement": 0.95 - 0.03 * t}) for t in range(20)]
    assert _signs(steps) == [[]] * 20


def test_a_score_that_leaves_the_rule_behind_is_a_sign_even_where_the_rule_cannot_parse():
    steps = [_step(0.5 + 0.03 * t, 0.5, **{"reward_model/mean": 0.5 + 0.03 * t}) for t in range(15)]
    assert "rule/accuracy - reward_model/mean" in _signs(steps)[-1][0]


def test_a_sign_is_seen_exactly_when_its_strength_exceeds_1():
    """Also where the score was above the rule from the start, so that the sign is negative."""
    alarm = HackingAlarm()
    for t in range(20):
        score = 0.6 + 0.02 * t
        said = alarm.observe(t, _step(score, 0.55, **{"reward_model/mean": score, "reward/group_spread": 0.5}))
        strong = [name for name, strength in alarm.strengths.items() if strength > 1]
        assert [sign.partition(" fell from")[0] for sign in said] == strong
    assert strong == ["rule/accuracy - reward_model/mean"]


def test_completions_that_do_not_end_are_a_sign_even_where_the_rule_accepts_them():
    steps = [_step(0.5 + 0.03 * t, 0.5 + 0.03 * t, **{"rollout/cut_off_rate": 0.03 * t}) for t in range(15)]
    assert "1 - rollout/cut_off_rate" in _signs(steps)[-1][0]


def test_the_held_out_accuracy_is_compared_between_evaluations_only():
    steps = [_step(0.5 + 0.01 * t, 0.5 + 0.01 * t) for t in range(60)]
    for t in range(0, 60, 2):
        steps[t]["test/rule_avg"] = 0.5 - max(0, t - 20) * 0.01
    said = _signs(steps)
    assert not any(said[:24])
    assert "test/rule_avg fell" in said[58][0]
    assert "test/rule_avg fell" in said[59][0]  # what was seen stands until the next evaluation


def test_a_reward_model_that_begins_harsh_and_calibrates_upward_is_no_sign():
    """Its score comes up to the rule's accuracy from below; only what is paid above that counts."""
    steps = [_step(0.3 + 0.01 * t, 0.6, **{"reward_model/mean": 0.3 + 0.01 * t}) for t in range(30)]
    assert not any(_signs(steps))


def test_it_goes_off_in_few_honest_runs_of_any_length():
    """The reward rises, and all signs do nothing but waver."""
    names = ["reward_model/rule_agreement", "rule/unparsed", "rollout/cut_off_rate", "rollout/agreement_silent"]
    names += ["reward_model/kept_when_swapped_silent", "reward_model/mean", "reward/group_spread", "test/rule_avg"]
    generator, false = np.random.default_rng(0), 0
    for run in range(30):
        alarm, steps = HackingAlarm(), (20, 40, 60)[run % 3]
        noise = generator.normal(0, 0.05, (steps, len(names) + 2))
        for step, row in enumerate(noise):
            values = {name: 0.5 + value for name, value in zip(names, row[2:].tolist(), strict=True)}
            rising = {"reward/mean": 0.3 + 0.005 * step + row[0], "reward/mean_silent": 0.3 + 0.005 * step + row[0]}
            if alarm.observe(step, {**values, **rising, "rule/accuracy": 0.5 + row[1]}):
                false += 1
                break
    assert false <= 1


def test_group_spread_vanishes_when_problems_are_solved_and_when_the_reward_is_hacked():
    def run(accuracy):
        return [_step(0.5 + 0.025 * t, accuracy(t), **{"reward/group_spread": 0.9 * 0.8**t}) for t in range(20)]

    assert _signs(run(lambda t: 0.5 + 0.025 * t))[-1] == []
    assert any("group_spread fell" in sign for sign in _signs(run(lambda t: 0.5))[-1])


def test_a_step_without_finite_reward_leaves_the_alarm_as_it_was():
    steps = [_step(0.5 + 0.03 * t, 0.5, **{"reward_model/mean": 0.5 + 0.03 * t}) for t in range(15)]
    broken = [*steps[:8], _step(math.nan, 0.5, **{"reward_model/mean": math.nan}), {"test/rule_avg": 0.5}, *steps[8:]]
    alarm = HackingAlarm()
    said = [alarm.observe(t, step) for t, step in enumerate(broken)]
    assert said[8] == said[9] == said[7]
    assert said[-1]


def test_a_step_counts_once():
    steps = [_step(0.5 + 0.03 * t, 0.5, **{"reward_model/mean": 0.5 + 0.03 * t}) for t in range(15)]
    once, twice = HackingAlarm(), HackingAlarm()
    for t, step in enumerate(steps):
        said = once.observe(t, step)
        assert twice.observe(t, step) == twice.observe(t, step) == twice.observe(t - 1, step) == said
    assert once.since == twice.since is not None


def test_a_restored_alarm_goes_on_as_if_nothing_had_happened():
    steps = [_step(0.5 + 0.03 * t, 0.5, **{"reward_model/mean": 0.5 + 0.03 * t}) for t in range(15)]
    whole, kept = HackingAlarm(), HackingAlarm()
    for t, step in enumerate(steps):
        restored = HackingAlarm()
        restored.restore(json.loads(json.dumps(kept.state(), allow_nan=False)))
        kept = restored
        assert kept.observe(t, step) == whole.observe(t, step)
        assert (kept.strengths, kept.since) == (whole.strengths, whole.since)
    assert whole.since is not None
