"""Whole runs that are rewarded by several reward models."""

import json

import pytest

from cooper_audit.run.run_record import read_metrics
from cooper_rl import Answer, AnswerGroup, CooperReward, CooperTrainer, InputError, Problem, build_config
from cooper_rl.reward.reward_config import read_reward_inputs
from slow_members import first_fast

KINDS = ["mean", "median", "min", "uwo", "soft_min", "brme"]


def _tree(settings, learns=True, **ensemble):
    return {
        **settings,
        "steps": 2,
        "evaluation": {"every": 0},
        "kind": "cooper_model" if learns else "static",
        "rewards": [{"kind": "shelf.ensemble:Ensemble", "others": [settings["reward_model"]], **ensemble}],
    }


@pytest.mark.parametrize("kind", first_fast(KINDS))
def test_a_frozen_copy_of_the_start_is_a_second_member(settings, kind):
    with CooperTrainer.from_config(build_config(_tree(settings, combine={"kind": kind}))) as trainer:
        trainer.fit()
    rows = read_metrics(trainer.directory)
    assert rows[0]["ensemble/disagreement"] == pytest.approx(0.0, abs=1e-7)
    assert rows[1]["ensemble/disagreement"] > 1e-5  # the first member has learned
    assert rows[1]["reward/mean"] == pytest.approx(
        sum(c["reward"] for c in _completions(trainer)) / len(_completions(trainer)), abs=1e-6
    )
    for c in _completions(trainer):
        low, high = sorted((c["reward_model"], c["part/member_2"]))
        assert low - 0.01 <= c["reward"] <= high + 1e-6
        assert c["reward"] == c["part/ensemble"]
        if kind == "min":
            assert c["reward"] == low


def _completions(trainer):
    text = (trainer.directory / "rollouts" / "000002.jsonl").read_text()
    return [completion for line in text.splitlines() for completion in json.loads(line)["completions"]]


def test_groups_of_different_sizes_and_repeated_scoring(settings):
    texts = [["1 + 1 = 2", "2", "3"], ["4"]]
    groups = [
        AnswerGroup(f"g{p}", Problem(f"p{p}", "1 + 1 = ?", "2"), [Answer(text) for text in row])
        for p, row in enumerate(texts)
    ]
    with CooperReward.from_config(build_config(_tree(settings, learns=False))) as reward:
        first = reward.score(groups, step=1).rewards
        assert [len(row) for row in first] == [3, 1]
        assert reward.score(groups[::-1], step=1).rewards == first[::-1]


@pytest.mark.parametrize(
    ("ensemble", "words"),
    [
        ({"others": []}, "at least 1"),
        ({"others": ["m"]}, "write the settings of this section"),
        ({"combine": {"kind": "brme", "nominal": 2}}, "places of 2 members go from 0 to 1"),
        ({"combine": {"kind": "max"}}, "no combination of kind 'max'"),
        ({"combine": {"kind": "soft_min", "temperature": 0}}, "greater than 0"),
    ],
)
def test_ensembles_that_cannot_work_are_refused(settings, ensemble, words):
    with pytest.raises(InputError, match=words):
        build_config(_tree(settings, **ensemble))


def test_a_shaping_of_one_models_logit_refuses_an_ensemble(settings):
    with pytest.raises(InputError, match=r"would drop other rewards, but rewards lists shelf\.ensemble:Ensemble"):
        build_config({**_tree(settings), "shaping": [{"kind": "cap"}]})


def test_a_member_that_is_no_reward_model_is_refused_before_the_run(settings, tmp_path):
    tree = _tree(settings, others=[{"model": str(tmp_path / "nowhere")}])
    with pytest.raises(InputError, match="nowhere"):
        read_reward_inputs(build_config(tree))
