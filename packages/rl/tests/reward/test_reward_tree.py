"""Rewards as a tree: what the short forms mean, which settings contradict, and runs that only the tree can describe."""

import json
from collections.abc import Sequence

import pytest
import yaml

from cooper_audit.run.run_record import read_metrics
from cooper_base.clock import MEASURED
from cooper_base.config.explanation import commented_yaml
from cooper_base.data.verdict import Verdict
from cooper_rl import Answer, AnswerGroup, CooperTrainer, InputError, Problem, StepContext, build_config, load_config
from cooper_rl.reward.kinds.plain import RuleReward
from cooper_verify.rules.rule import ProblemAndText, Rule

FUNCTION = {"kind": "function", "function": "test_reward_tree:length"}


def length(problem, completion):
    return float(len(completion.text))


def _fit(settings, **changes):
    with CooperTrainer.from_config(build_config({**settings, "evaluation": {"every": 0}, **changes})) as trainer:
        trainer.fit()
    return trainer


def _timeless(directory):
    return [{k: v for k, v in row.items() if not k.startswith(MEASURED)} for row in read_metrics(directory)]


def _completions(trainer, step=1):
    text = (trainer.directory / "rollouts" / f"{step:06d}.jsonl").read_text()
    return [completion for line in text.splitlines() for completion in json.loads(line)["completions"]]


@pytest.mark.parametrize(
    ("short", "kinds", "learns"),
    [
        ({"kind": "rule"}, ["rule"], False),
        ({"kind": "static"}, ["reward_model"], False),
        ({}, ["earned"], True),
        ({"kind": "cooper_model"}, ["reward_model"], True),
        ({"kind": "cooper_light"}, ["reward_model"], True),
        ({"kind": "cooper_model", "rewards": [{"kind": "hybrid", "k": 2.0}]}, ["hybrid"], True),
        ({"kind": "function", "rewards": [{**FUNCTION, "weight": 0.1}]}, ["function"], False),
        ({"kind": "cooper", "rewards": [{"kind": "earned"}, FUNCTION]}, ["earned", "function"], True),
    ],
)
def test_a_printed_configuration_shows_the_tree_and_is_the_same_run(settings, tmp_path, short, kinds, learns):
    settings = {**settings, **short, "shaping": [{"kind": "overlong", "max_tokens": 12, "buffer": 4}]}
    (tmp_path / "short.yaml").write_text(yaml.safe_dump(settings))
    config = load_config(tmp_path / "short.yaml")
    assert ([part.kind for part in config.rewards], config.learns) == (kinds, learns)
    assert [part.kind for part in config.shaping] == ["overlong"]
    for comments in (True, False):
        (tmp_path / "long.yaml").write_text(commented_yaml(config, comments))
        assert load_config(tmp_path / "long.yaml") == config
    assert yaml.safe_load((tmp_path / "long.yaml").read_text())["rewards"][0]["kind"] == kinds[0]


def test_a_record_from_outside_is_printed_with_its_path(settings, tmp_path):
    settings = {**settings, "kind": "function", "rewards": [{"kind": "tree_parts:Longer", "weight": 0.5, "than": 3}]}
    (tmp_path / "short.yaml").write_text(yaml.safe_dump(settings))
    printed = commented_yaml(load_config(tmp_path / "short.yaml"))
    assert yaml.safe_load(printed)["rewards"] == [{"kind": "tree_parts:Longer", "weight": 0.5, "than": 3}]
    (tmp_path / "long.yaml").write_text(printed)
    assert load_config(tmp_path / "long.yaml") == load_config(tmp_path / "short.yaml")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rewards": [{"kind": "reward_model", "model": "other"}]}, "unknown key 'rewards.0.model'"),
        ({"kind": "static", "reward_model": {"learns": True}}, "reward_model.learns: true"),
        ({"kind": "cooper", "reward_model": {"learns": False}}, "remove reward_model.learns: false"),
        ({"kind": "rule", "rewards": [{"kind": "reward_model"}]}, "kind: rule has no reward model"),
        ({"kind": "rule", "rewards": [{"kind": "earned"}]}, "kind: rule has no reward model"),
        ({"reward_models": {"main": {}}}, "unknown key .reward_models."),
        ({"kind": "static", "reward_model": None}, "kind: static needs a reward model"),
        ({"shaping": [{"kind": "clip", "low": 1.0, "high": 0.0}]}, "low: 1.0 must be below high: 0.0"),
        ({"rewards": [{"kind": "ruel"}]}, "no reward of kind 'ruel'"),
    ],
)
def test_contradictory_settings_are_refused(settings, changes, words):
    folder = settings["reward_model"]["model"]
    if changes.get("reward_model"):
        changes = {**changes, "reward_model": {"model": folder, **changes["reward_model"]}}
    with pytest.raises(InputError, match=words):
        build_config({**settings, **changes})


def test_a_frozen_model_in_a_hybrid(settings):
    trainer = _fit(settings, steps=2, kind="static", rewards=[{"kind": "hybrid"}])
    rows = read_metrics(trainer.directory)
    assert "hybrid/weight" in rows[0]
    assert not any(key.startswith("pairs/") for key in rows[0])
    assert trainer.parts.reward.version == 0
    assert not (trainer.directory / "checkpoints" / "000002" / "reward_model").exists()


@pytest.mark.slow
def test_a_model_learns_while_the_rule_is_the_reward(settings):
    tree = {"rewards": [{"kind": "rule"}]}
    trainer = _fit(settings, **tree, name="beside")
    rows = read_metrics(trainer.directory)
    assert all(row["reward/mean"] == row["rule/accuracy"] for row in rows)
    assert rows[-1]["pairs/count"] > 0
    assert trainer.parts.reward.version == 4
    half = {**settings, **tree, "name": "half", "evaluation": {"every": 0}}
    with CooperTrainer.from_config(build_config(half)) as stopped:
        stopped.fit(lambda step, _: stopped.request_stop() if step == 2 else None)
    with CooperTrainer.from_config(build_config(half), resume=True) as resumed:
        resumed.fit()
    assert _timeless(resumed.directory) == _timeless(trainer.directory)
    other = {**half, "rewards": [{"kind": "hybrid"}], "policy": {"model": "/missing"}}
    with pytest.raises(InputError, match=r"rewards: the checkpoint .* has rule, this run has hybrid"):
        CooperTrainer.from_config(build_config(other), resume=True)


def test_before_and_after_shaping_are_both_recorded(settings):
    shaping = [{"kind": "clip", "low": 0.25}, {"kind": "length_penalty", "free": 8, "per_token": 0.1}]
    trainer = _fit(settings, steps=1, kind="rule", shaping=shaping)
    row = read_metrics(trainer.directory)[0]
    for completion in _completions(trainer):
        assert completion["unshaped"] == float(completion["verdict"] == "correct")
        price = 0.1 * max(0, completion["tokens"] - 8)
        assert completion["reward"] == pytest.approx(max(completion["unshaped"], 0.25) - price)
    assert row["reward/mean"] == row["rule/accuracy"]
    paid = [completion["reward"] for completion in _completions(trainer)]
    assert row["reward/shaped_mean"] == pytest.approx(sum(paid) / len(paid))


def test_the_reward_after_a_kl_penalty_is_recorded_and_measured(settings):
    kl = {"kl": {"coefficient": 0.5, "kind": "k1", "where": "reward"}}
    policy = {**settings["policy"], "learning_rate": 0.01}
    rewards = {"kind": "function", "rewards": [FUNCTION]}
    trainer = _fit(settings, steps=2, algorithm=kl, policy=policy, **rewards)
    start = _completions(trainer, step=1)  # the policy still is the reference
    assert [c["after_kl"] for c in start] == pytest.approx([c["reward"] for c in start], abs=1e-4)
    found = _completions(trainer, step=2)
    assert any(abs(c["after_kl"] - c["reward"]) > 1e-3 for c in found)
    row = read_metrics(trainer.directory)[1]
    assert row["reward/after_kl_mean"] == pytest.approx(sum(c["after_kl"] for c in found) / len(found))
    assert row["reward/mean"] == pytest.approx(sum(c["reward"] for c in found) / len(found))


def test_a_time_out_has_the_same_verdict_in_the_reward_and_the_record():
    class Hesitates(Rule):
        """A rule that takes too long, but only the first time."""

        def __init__(self):
            self.asked = 0

        def verify_problems(self, asked: Sequence[ProblemAndText], /) -> list[Verdict]:
            self.asked += 1
            verdict: Verdict = "timeout" if self.asked == 1 else "correct"
            return [verdict] * len(asked)

    rule = Hesitates()
    context = StepContext([AnswerGroup("g", Problem("p", "1 + 1 = ?", "2"), [Answer("2"), Answer("3")])], rule)
    assert RuleReward().score(context).rewards.rows() == [[0.0, 0.0]]
    assert (context.verdicts, rule.asked) == ([["timeout", "timeout"]], 1)
