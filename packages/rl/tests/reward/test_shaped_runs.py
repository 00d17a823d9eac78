"""Whole runs with shapings: what is paid, what the record and the alarm see, what is refused, and how they resume."""

import json
import math
from typing import Any

import pytest

from cooper_audit.run.run_record import read_metrics
from cooper_base.config.explanation import commented_yaml
from cooper_rl import Answer, AnswerGroup, CooperReward, CooperTrainer, InputError, Problem, build_config, load_config
from cooper_rl.reward.base import ShapingConfig
from cooper_rl.reward.scored import Scored
from cooper_rl.run.inputs import read_inputs
from slow_members import first_fast

SHAPINGS = {
    "cap": [{"kind": "cap", "references": "solution"}],
    "cap-accepted": [{"kind": "cap", "references": "accepted"}],
    "par": [{"kind": "par"}],
    "par-group": [{"kind": "par", "references": "group"}],
    "log-sigmoid": [{"kind": "shelf.log_sigmoid:LogSigmoid", "estimate": "empirical"}],
    "gate": [{"kind": "gate", "by": "rule", "weight": 0.2}],
    "rank": [{"kind": "shelf.rank:RankInGroup", "tie": 0.0}],
    "constraints": [{"kind": "shelf.constraints:Constraints", "constraints": [{"reward": "rule", "at": 0.9}]}],
    "cap-in-gate": [{"kind": "cap"}, {"kind": "gate", "by": "rule"}],
}


class Stretched(ShapingConfig):
    affine_per_group = True

    def build(self):
        return self

    def shape(self, rewards, context):
        return rewards.like(2 * rewards.flat)


@pytest.fixture
def settings(settings):
    return {**settings, "kind": "cooper_light"}  # whose only reward is the reward model


def _fit(settings, **changes):
    with CooperTrainer.from_config(build_config({**settings, "evaluation": {"every": 0}, **changes})) as trainer:
        trainer.fit()
    return trainer


def _completions(trainer, step):
    text = (trainer.directory / "rollouts" / f"{step:06d}.jsonl").read_text()
    return [completion for line in text.splitlines() for completion in json.loads(line)["completions"]]


@pytest.mark.parametrize(
    "name", [name if name in ("cap", "gate") else pytest.param(name, marks=pytest.mark.slow) for name in SHAPINGS]
)
def test_a_run_pays_the_shaped_reward_and_measures_the_unshaped_one(settings, name):
    trainer = _fit(settings, steps=2, shaping=SHAPINGS[name])
    for step, row in enumerate(read_metrics(trainer.directory), 1):
        found = _completions(trainer, step)
        assert [c["unshaped"] for c in found] == [c["reward_model"] for c in found]
        assert row["reward/mean"] == pytest.approx(row["reward_model/mean"])  # the alarm reads this
        assert row["reward/shaped_mean"] == pytest.approx(sum(c["reward"] for c in found) / len(found), abs=1e-6)
        assert any(c["reward"] != c["unshaped"] for c in found)
        assert math.isfinite(row["policy/loss"])
        if name == "cap":
            above = [c for c in found if c["reward"] != c["logit"]]
            assert row["shaping/above_reference"] == len(above) / len(found)
            assert all(c["reward"] < c["logit"] for c in above)
        if name == "gate":
            assert row["shaping/gate_open"] == row["rule/accuracy"]


def test_a_model_that_only_a_shaping_reads_is_recorded_and_measured(settings):
    constraints = [{"kind": "shelf.constraints:Constraints", "constraints": [{"reward": "reward_model", "at": 0.8}]}]
    trainer = _fit(settings, steps=1, kind="rule", shaping=constraints)
    row, found = read_metrics(trainer.directory)[0], _completions(trainer, 1)
    assert row["reward/mean"] == row["rule/accuracy"]
    scores = [c["reward_model"] for c in found]
    assert row["reward_model/mean"] == pytest.approx(sum(scores) / len(scores), abs=1e-6)
    assert row["constraints/1_mean"] == pytest.approx(row["reward_model/mean"], abs=1e-6)


@pytest.mark.parametrize(
    "shaping",
    first_fast(
        [
            {"kind": "cap", "references": "accepted"},
            {"kind": "shelf.constraints:Constraints", "constraints": [{"reward": "rule", "at": 0.9, "kind": "equal"}]},
        ]
    ),
)
def test_a_run_with_memory_resumes_bit_for_bit(settings, shaping):
    changes = {"shaping": [shaping], "rule": {"kind": "test_shaped_runs:accepts_odd"}}
    whole = _fit(settings, name="whole", **changes)
    half = build_config({**settings, "evaluation": {"every": 0}, "name": "half", **changes})
    with CooperTrainer.from_config(half) as stopped:
        stopped.fit(lambda step, _: stopped.request_stop() if step == 2 else None)
        assert stopped.parts.reward._state()["memories"][-1] is not None
    with CooperTrainer.from_config(half, resume=True) as resumed:
        resumed.fit()
    for step in (3, 4):
        assert _completions(resumed, step) == _completions(whole, step)


def accepts_odd(problem, completion):
    return "correct" if len(completion) % 2 else "wrong"


def test_a_printed_configuration_is_the_same_run(settings, tmp_path):
    combine = {"kind": "soft_min", "temperature": 0.2}
    ensemble = [{"kind": "shelf.ensemble:Ensemble", "others": [settings["reward_model"]], "combine": combine}]
    trees: list[dict[str, Any]] = [{"shaping": shaping} for shaping in SHAPINGS.values()]
    trees.append({"rewards": ensemble})
    for tree in trees:
        config = build_config({**settings, **tree})
        (tmp_path / "printed.yaml").write_text(commented_yaml(config))
        assert load_config(tmp_path / "printed.yaml") == config


@pytest.mark.slow
def test_groups_of_different_sizes_and_repeated_scoring(settings):
    texts = [["1 + 1 = 2", "2", "3"], ["4"], ["5", "\\boxed{6}"]]
    groups = [
        AnswerGroup(f"g{p}", Problem(f"p{p}", "1 + 1 = ?", "2", "\\boxed{2}"), [Answer(text) for text in row])
        for p, row in enumerate(texts)
    ]
    for shaping in SHAPINGS.values():
        config = build_config({**settings, "shaping": shaping})
        with CooperReward.from_config(config) as reward:
            first = reward.score(groups, step=1)
            assert [len(row) for row in first.rewards] == [3, 1, 2]
            assert reward.score(groups, step=1).rewards == first.rewards
            back = Scored.joined([first], [groups[2], groups[0]])
            assert back.rewards == [first.rewards[2], first.rewards[0]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shaping": [{"kind": "clip", "low": 0.1}, {"kind": "cap"}]}, "cap reads the logit, not the rewards before"),
        ({"kind": "rule", "shaping": [{"kind": "cap"}]}, "would drop other rewards, but rewards lists rule"),
        (
            {"rewards": [{"kind": "hybrid"}], "shaping": [{"kind": "par"}]},
            "replaces the score .* rewards lists hybrid",
        ),
        ({"shaping": [{"kind": "cap", "references": "median"}]}, "references"),
        (
            {
                "shaping": [
                    {
                        "kind": "shelf.constraints:Constraints",
                        "constraints": [{"reward": "reward_model", "at": 0.7, "kind": "equal"}],
                    }
                ]
            },
            r"constraint at 0\.7 is on the only reward, reward_model",
        ),
        ({"shaping": [{"kind": "test_shaped_runs:Stretched"}]}, "changes no gradient"),
    ],
)
def test_what_cannot_work_or_matter_is_refused_with_the_reason(settings, changes, words):
    with pytest.raises(InputError, match=words):
        build_config({**settings, **changes})


def test_an_affine_shaping_is_accepted_where_it_matters(settings):
    own = {"kind": "test_shaped_runs:Stretched"}
    build_config({**settings, "shaping": [own, {"kind": "clip", "high": 1.0}]})
    build_config({**settings, "shaping": [own], "algorithm": {"advantages": {"kind": "dr_grpo"}}})
    build_config({**settings, "shaping": [own], "algorithm": {"advantages": {"kind": "grpo", "std_floor": 0.1}}})
    build_config({**settings, "shaping": [own], "algorithm": {"kl": {"coefficient": 0.1, "where": "reward"}}})


def test_missing_solutions_are_reported_before_any_model_is_loaded(settings, tmp_path):
    (tmp_path / "problems.jsonl").write_text('{"question": "1 + 1 = ?", "answer": "2"}\n')
    changes = {"problems": {"source": str(tmp_path / "problems.jsonl"), "limit": None}, "evaluation": {"every": 0}}
    config = build_config({**settings, **changes, "shaping": [{"kind": "cap"}]})
    with pytest.raises(InputError, match="needs a solution for every problem, but 1 of 1 problems have none"):
        read_inputs(config)
