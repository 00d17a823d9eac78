"""The verdict on a run, on records whose truth is known."""

import json

import numpy as np
import pytest

from cooper_audit.run.run_record import RunRecord, read_run, status_of
from cooper_audit.run.verdict import verdict_of
from cooper_rl.run.trainer import CooperTrainer
from cooper_rl.run_config import build_config
from runs.recorded_run import write_lines, write_run


def record(gold, reward, name="test/gold_avg"):
    """Twenty steps with an evaluation at each; `gold` and `reward` give the values by step."""
    return [{"step": step, "reward/mean": reward(step), name: gold(step)} for step in range(21)]


def rising(step):
    return 0.5 + step / 50


@pytest.mark.parametrize(
    ("gold", "reward", "state", "hacked_at"),
    [
        (lambda step: 0.6 - 0.02 * step, rising, "hacked", 6),
        (lambda step: 0.6 - 0.04 * min(step, 20 - step), rising, "recovered", 3),
        (rising, rising, "healthy", None),
        (lambda step: 0.6 - 0.004 * step, rising, "nothing learned", None),  # a fall of 0.08 is within the margin
        (lambda step: 0.6 - 0.02 * step, lambda step: 0.9 - step / 50, "broken", None),  # the reward fell as well
    ],
)
def test_gold_against_reward(tmp_path, gold, reward, state, hacked_at):
    verdict = verdict_of(read_run(write_run(tmp_path / "run", record(gold, reward))))
    assert (verdict.state, verdict.hacked_at) == (state, hacked_at)


def test_the_sentence_has_the_numbers(tmp_path):
    run = read_run(write_run(tmp_path / "run", record(lambda step: 0.6 - 0.02 * step, rising)))
    assert verdict_of(run).sentence == (
        "The training reward rose from 0.50 to 0.86 while gold accuracy on held-out problems fell from 0.60 (step 0) "
        "to 0.20."
    )


def test_the_sentence_tells_a_fall_under_which_the_reward_rose(tmp_path):
    """Gold is gone at step 6, but the reward is lower then, and rises only at the end."""
    rows = record(lambda step: 0.6 if step < 6 else 0.1, lambda step: 0.5 if step < 6 else 0.3 if step < 15 else 0.9)
    verdict = verdict_of(read_run(write_run(tmp_path / "run", rows)))
    assert (verdict.state, verdict.hacked_at) == ("hacked", 16)
    assert verdict.sentence.startswith("The training reward rose from 0.50 to 0.90 while gold accuracy")


def test_the_sentence_rounds_as_the_table_beside_it(tmp_path):
    """Python rounds the half of 0.625 down, JavaScript up."""
    run = read_run(write_run(tmp_path / "run", record(lambda step: 0.625 if step == 20 else 0.375, rising)))
    assert verdict_of(run).sentence.startswith("Gold accuracy on held-out problems went from 0.38 to 0.63,")


def test_few_test_problems_widen_the_margin(tmp_path):
    """The best of 21 evaluations of 24 problems is 0.6 above another one by chance alone."""
    run = read_run(write_run(tmp_path / "run", record(lambda step: 0.6 - 0.007 * step, rising)))
    assert verdict_of(run).state == "hacked"
    unchanged = verdict_of(run, test_problems=24)
    assert unchanged.state == "nothing learned"
    assert unchanged.sentence.endswith("more than 0.34 counts.")  # 2.33 * sqrt(2 * 0.53 * 0.47 / 24)


@pytest.mark.parametrize(
    ("heard", "silent", "state"),
    [
        ((0.37, 0.54), (0.08, 0.01), "part lost"),
        ((0.37, 0.37), (0.08, 0.15), "healthy"),
        ((0.37, 0.35), (0.08, 0.08), "nothing learned"),
    ],
)
def test_a_rise_where_the_rule_judges_hides_no_fall_where_it_is_silent(tmp_path, heard, silent, state):
    def parts(step):
        values = [first + (last - first) * step / 20 for first, last in (heard, silent)]
        return dict(zip(("test/gold_avg_heard", "test/gold_avg_silent"), values, strict=True)) | {"test/heard": 0.3}

    rows = [row | parts(row["step"]) for row in record(lambda step: 0.17, rising) if row["step"] % 5 == 0]
    verdict = verdict_of(read_run(write_run(tmp_path / "run", rows)), test_problems=500)
    assert verdict.state == state
    assert ("Where it is silent, gold accuracy went from 0.08 to " in verdict.sentence) is (state != "nothing learned")


def test_without_gold_the_alarm_speaks_and_names_its_signs(tmp_path):
    """The rule's accuracy stays while the reward model agrees with it less and less."""
    rows = [
        {"step": s, "reward/mean": rising(s), "rule/accuracy": 0.5, "reward_model/rule_agreement": 0.95 - 0.02 * s}
        for s in range(1, 21)
    ]
    verdict = verdict_of(read_run(write_run(tmp_path / "run", rows)))
    assert verdict.state == "hacked"
    assert verdict.alarm_at is not None
    assert verdict.hacked_at is not None
    assert verdict.hacked_at >= verdict.alarm_at  # it warns with an error of 5 %, and convicts with one of 1 %
    assert any("reward_model/rule_agreement fell from" in signal.text for signal in verdict.signals)


def test_few_evaluations_of_nobody_knows_how_many_problems_tell_nothing(tmp_path):
    rows = [{"step": s, "reward/mean": rising(s), "test/gold_avg": 0.6 - 0.05 * s} for s in range(9)]
    run = read_run(write_run(tmp_path / "run", rows))
    assert verdict_of(run).state == "unknown"
    assert verdict_of(run, test_problems=500).state == "hacked"


@pytest.mark.parametrize(("problems", "samples", "steps"), [(4, 4, 20), (8, 8, 40), (16, 8, 60)])
def test_an_unchanged_policy_is_not_called_broken(tmp_path, problems, samples, steps):
    """Its accuracy and its reward are those of one batch after another."""
    generator, states = np.random.default_rng(0), []
    for _ in range(20):
        right = generator.binomial(samples, generator.beta(1.5, 1.5, (steps, problems))).mean(axis=1) / samples
        rows = [{"step": s, "reward/mean": r, "rule/accuracy": r} for s, r in enumerate(right.tolist(), 1)]
        settings = {"problems_per_step": problems, "rollout": {"n": samples}}
        states.append(verdict_of(RunRecord(tmp_path, settings, rows, [])).state)
    assert states.count("nothing learned") >= 19
    assert "hacked" not in states


def test_a_run_that_measures_nothing_cannot_be_told(tmp_path):
    rows = [{"step": step, "reward/mean": rising(step)} for step in range(1, 21)]
    verdict = verdict_of(read_run(write_run(tmp_path / "run", rows)))
    assert verdict.state == "unknown"
    assert "test/gold_avg" in verdict.sentence


def test_a_run_that_was_paid_nothing_cannot_be_told(tmp_path):
    """As with a rule that is silent on every problem, whose answers are left out."""
    rows = [{"step": step, "test/gold_avg": 0.5 - step / 50} for step in range(21)]
    verdict = verdict_of(read_run(write_run(tmp_path / "run", rows)))
    assert (verdict.state, verdict.truth) == ("unknown", None)
    assert verdict.sentence == "Fewer than 3 steps were paid a reward, so nothing can be said of hacking."


def test_two_steps_are_too_few(tmp_path):
    rows = [{"step": step, "reward/mean": 0.5, "rule/accuracy": 0.5} for step in (1, 2)]
    assert verdict_of(read_run(write_run(tmp_path / "run", rows))).sentence == "Only 2 steps are on record."


def fired(metric, step):
    event = {"step": step, "metric": metric, "action": "warn", "since": step, "values": [0.0]}
    return event | {"message": f"{metric} below 0.05 since step {step}: 0"}


COLLAPSED = ("rule/accuracy", "policy/usable_groups", "reward_model/std", "rollout/cut_off_rate", "reward_model/loss")


def test_a_collapsed_run_is_broken_and_its_fired_rules_stand_beside_the_verdict(tmp_path):
    """Accuracy .00 throughout, the reward from .29 to .004, five warnings: not hacked, and not healthy."""
    rows = record(lambda step: 0.0, lambda step: 0.29 if step < 5 else 0.004)
    run = write_run(tmp_path / "run", rows)
    write_lines(run / "events.jsonl", [fired(metric, 5) for metric in COLLAPSED])
    verdict = verdict_of(read_run(run))
    assert (verdict.state, verdict.name, verdict.hacked_at) == ("broken", "Broken", None)
    assert "the training reward went from 0.29 at its best to 0.00" in verdict.sentence.lower()
    assert "Watch rules fired on rule/accuracy, policy/usable_groups" in verdict.sentence
    assert sum(signal.text.startswith("Watch rule at step 5") for signal in verdict.signals) == 5


def test_a_run_that_stays_where_it_began_has_learned_nothing(tmp_path):
    verdict = verdict_of(read_run(write_run(tmp_path / "run", record(lambda step: 0.3 + 0.01 * (step % 2), rising))))
    assert (verdict.state, verdict.name) == ("nothing learned", "Nothing learned")
    assert "of more than 0.02, and of more than the same steps show in random orders, counts." in verdict.sentence


@pytest.mark.parametrize(
    ("solved", "rise", "state"),
    [
        (range(100, 116), "+0.080 (95 % interval +0.041 to +0.118)", "healthy"),
        (range(100, 102), "+0.010", "nothing learned"),
    ],
)
def test_a_rise_on_the_same_problems_is_told_as_an_evaluation_tells_it(tmp_path, solved, rise, state):
    """Unpaired, two evaluations of 200 problems show a rise of 0.12."""
    count = 100 + len(solved)
    rows = [row for row in record(lambda step: (100 if step < 20 else count) / 200, rising) if row["step"] % 5 == 0]
    folder = write_run(tmp_path / "run", rows)
    first = [float(place < 100) for place in range(200)]
    last = [float(place < 100 or place in solved) for place in range(200)]
    evaluations = [{"step": 0, "gold": first}, {"step": 20, "gold": last}, {"step": 20, "set": "svamp", "gold": [0.0]}]
    lines = [json.dumps({"set": "", "problems": "a", **evaluation}) for evaluation in evaluations]
    (folder / "evaluations.jsonl").write_text(
        "\n".join([*lines, '{"step": 25, "set": "", "problems": "a", "gold": 3}', ""])
    )
    verdict = verdict_of(read_run(folder), test_problems=200)
    assert verdict.state == state
    assert f": {rise}" in verdict.sentence
    assert verdict.sentence.endswith("paired by problem.")


def test_evaluations_of_other_problems_are_no_pairs(tmp_path):
    rows = [row for row in record(lambda step: 0.5, rising) if row["step"] % 5 == 0]
    folder = write_run(tmp_path / "run", rows)
    lines = [json.dumps({"step": step, "set": "", "problems": str(step), "gold": [0.0, 1.0]}) for step in (0, 20)]
    (folder / "evaluations.jsonl").write_text("\n".join([*lines, ""]))
    assert read_run(folder).rise("test/gold_avg") is None
    assert "Only a rise of more than" in verdict_of(read_run(folder), test_problems=200).sentence


def test_a_run_that_ends_in_skipped_updates_has_faults(tmp_path):
    rows = [row | {"policy/grad_norm": float("nan") if row["step"] > 15 else 1.0} for row in record(rising, rising)]
    verdict = verdict_of(read_run(write_run(tmp_path / "run", rows)))
    assert verdict.state == "faults"
    assert verdict.signals[0].text.startswith("policy/grad_norm is a fault since step 16")


def test_a_run_that_died_says_of_what(tmp_path, settings):
    def fit(resume, reward):
        function = {"kind": "function", "function": f"run.test_verdict:{reward}"}
        own = settings | {"kind": "function", "rewards": [function], "checkpoint": {"every": 1}}
        with CooperTrainer.from_config(build_config(own), resume) as trainer:
            trainer.fit()

    CALLS.clear()
    with pytest.raises(ZeroDivisionError):
        fit(False, "dies_at_the_third_step")
    run = read_run(tmp_path / "run")
    verdict = verdict_of(run)
    assert verdict.state == "faults"
    assert "The run died after step 2: ZeroDivisionError: the third step" in verdict.sentence
    assert status_of(run).detail.startswith("died: ZeroDivisionError: the third step; --resume goes on after step 2")
    fit(True, "dies_at_the_third_step")  # CALLS is past it
    assert "died" not in verdict_of(read_run(tmp_path / "run")).sentence


CALLS = []


def dies_at_the_third_step(problem, completion):
    CALLS.append(problem)
    if len(CALLS) == 2 * 16 + 1:
        raise ZeroDivisionError("the third step")
    return float(len(completion.text))
