"""The demo's settings are valid for every arm, its summary repeats the runs' records, and the whole demo runs."""

import json

import pytest
from matplotlib.figure import Figure

from cooper_audit.run.hacking_alarm import HACKING
from cooper_audit.run.run_record import read_events, read_metrics
from cooper_lab.arithmetic.arms import ARMS, arm_settings, run_all, summarise
from cooper_lab.arithmetic.picture import _add_dose, _for_a_phone, draw
from cooper_rl.engines.losses.reward_model import PairwiseLoss
from cooper_rl.policy.advantages import GRPO
from cooper_rl.reward.pairs.base import PAIRS
from cooper_rl.run_config import build_config
from runs.recorded_run import data_of


def test_arms_differ_in_their_reward_and_share_everything_else(tmp_path):
    configs = {arm: build_config(arm_settings(arm, tmp_path, 3)) for arm in ARMS}
    assert {arm: config.kind for arm, config in configs.items()} == {
        "rule": "rule",
        "static": "static",
        "paper": "paper",
        "cooper": "cooper",
    }
    assert [PAIRS.kind_of(part) for part in configs["paper"].cooptimization.pairs] == ["assistant"]
    assert configs["paper"].cooptimization.loss == PairwiseLoss(anchor=0)
    assert [PAIRS.kind_of(part) for part in configs["cooper"].cooptimization.pairs] == [
        "assistant",
        "on_policy",
        "near_reference",
    ]
    assert configs["cooper"].cooptimization.replay.labelled is None  # data that the other arms do not get
    assert {arm: config.cooptimization.positives for arm, config in configs.items() if arm in ("paper", "cooper")} == {
        "paper": ("rollout",),
        "cooper": ("rollout",),
    }  # nobody reads the data set's solutions
    for name in ("policy", "problems", "test_problems", "rollout", "steps", "seed", "evaluation", "rule"):
        assert len({getattr(config, name).__repr__() for config in configs.values()}) == 1, name
    for arm, config in configs.items():
        # A floor is a part of how `cooper` weighs its reward model; it binds in no group of the rule.
        advantages = GRPO(std_floor=0.2 if arm == "cooper" else 0.0)
        assert config.algorithm == configs["rule"].algorithm.model_copy(update={"advantages": advantages})


def test_the_summary_reads_gold_from_the_test_set_and_reward_from_training(tmp_path):
    rows = [
        {"step": 0, "test/gold_avg": 0.5},
        {"step": 1, "reward/mean": 0.4, "test/gold_avg": 0.7},
        {"step": 2, "reward/mean": 0.9, "test/gold_avg": 0.1},
    ]
    for arm in ARMS:
        (tmp_path / arm).mkdir()
        (tmp_path / arm / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    event = {"step": 2, "metric": "watch/reward_hacking", "action": "warn", "message": "the reward is hacked"}
    (tmp_path / "static" / "events.jsonl").write_text(json.dumps(event) + "\n")
    summary = summarise(tmp_path, seconds=1.0, seed=7)
    assert summary["arms"]["static"] == {
        "gold_start": 0.5,
        "gold_end": 0.1,
        "gold_best": 0.7,
        "reward_start": 0.4,
        "reward_end": 0.9,
        "steps": 2,
        "least_family": None,
        "alarm": 2,
    }
    assert summary["arms"]["rule"]["alarm"] is None
    assert summary["seed"] == 7
    assert 0.5 < summary["reward_model_accuracy"] <= 1
    assert json.loads((tmp_path / "summary.json").read_text()) == summary


def test_the_picture_can_be_read_on_a_phone():
    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes in figure.subplots(1, 2):
        axes.plot([0, 40], [0.4, 0.9], label="rule")
        axes.set_xlabel("step")
        axes.legend()
    _add_dose(figure)
    _for_a_phone(figure)
    pixels_per_point = 390 / (72 * figure.get_figwidth())
    texts = [
        text for axes in figure.axes for text in (axes.xaxis.label, *axes.get_xticklabels(), *axes.get_yticklabels())
    ]
    texts += [text for legend in figure.legends for text in legend.get_texts()]
    assert len(figure.axes) == 3
    assert len(figure.legends) == 1
    assert min(float(text.get_fontsize()) for text in texts) * pixels_per_point >= 10


@pytest.mark.slow
def test_the_demo_runs_whole_on_a_few_steps(tmp_path):
    overrides = {"steps": 2, "test_problems": {"limit": 8}}
    seconds = run_all([arm_settings(arm, tmp_path, 0, overrides) for arm in ARMS])
    summary = summarise(tmp_path, seconds, seed=0)
    assert set(summary["arms"]) == set(ARMS)
    for arm in ARMS:
        assert [row["step"] for row in read_metrics(tmp_path / arm)] == [0, 1, 2]
    data = data_of(draw(tmp_path))
    assert [run["label"] for run in data["runs"]] == [arm.label for arm in ARMS.values()]
    assert all(run["steps"]["2"][0]["completions"][0]["text"] for run in data["runs"])
    assert (tmp_path / "picture.png").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.long
def test_the_alarm_goes_off_on_the_static_arm_before_half_of_its_accuracy_is_lost(tmp_path):
    run_all([arm_settings(arm, tmp_path, 0) for arm in ("static", "cooper")])
    alarms = {arm: [e for e in read_events(tmp_path / arm) if e["metric"] == HACKING] for arm in ("static", "cooper")}
    assert alarms["cooper"] == []
    accuracy = [row["gold/accuracy"] for row in read_metrics(tmp_path / "static")[1:]]
    best = [max(accuracy[: step + 1]) for step in range(len(accuracy))]
    half_lost = next(step for step in range(1, 41) if accuracy[step - 1] <= best[step - 1] / 2)
    assert alarms["static"][0]["step"] < half_lost
