"""Whole runs with process credit."""

import json

import pytest

from cooper_audit.run.run_record import read_metrics
from cooper_rl import CooperTrainer, InputError, build_config
from slow_members import first_fast


@pytest.mark.parametrize("kind", first_fast(["MinForm", "Delta", "Sum"]))
def test_a_frozen_model_scores_the_steps_while_the_rule_pays(settings, kind):
    """The policy is random and never right, so groups teach by their steps alone."""
    tree = {
        "reward_model": None,
        "kind": "rule",
        "algorithm": {
            "min_spread": 0.001,
            "kl": None,
            "advantages": {"kind": f"shelf.process_credit:{kind}", "model": settings["reward_model"], "separator": " "},
        },
    }
    changes = {"steps": 2, "evaluation": {"every": 0}, **tree}
    with CooperTrainer.from_config(build_config({**settings, **changes})) as trainer:
        trainer.fit()
    rows = read_metrics(trainer.directory)
    for row in rows:
        assert row["rule/accuracy"] == 0
        assert row["policy/usable_groups"] == row["process/usable_groups"] > 0
        assert row["process/steps"] >= 1
        assert -1 <= row["process/lowest_step"] <= row["process/step_reward"] <= 1
        assert row["policy/grad_norm"] > 0
        assert row["time/score_steps"] > 0
    lines = (trainer.directory / "rollouts" / "000001.jsonl").read_text().splitlines()
    found = [completion for line in lines for completion in json.loads(line)["completions"]]
    assert any(c["advantage"] for c in found)


def test_steps_without_a_model_of_their_own_need_the_runs(settings):
    run = {**settings, "kind": "rule", "algorithm": {"advantages": {"kind": "shelf.process_credit:Delta"}}}
    assert build_config(run).loaded_model is not None
    with pytest.raises(InputError, match=r"needs a reward model: set reward_model\.model"):
        build_config({**run, "reward_model": None})
