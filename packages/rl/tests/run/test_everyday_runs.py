"""Several data sets, dynamic sampling, a curriculum and callbacks in real runs, which resume exactly."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from cooper_audit.run.run_record import read_metrics
from cooper_base.clock import MEASURED
from cooper_lab.arithmetic.arms import arm_settings
from cooper_rl import CooperTrainer, InputError, build_config
from cooper_rl.resampling import resampled
from run.everyday_callbacks import Calls


def ends(problem, completion) -> float:
    """A reward that some groups of a random policy agree on and some do not."""
    return float(problem.question.count("+") > 0 and len(completion.text) % 2 == 0)


def fit(settings, resume=False, stop_at=None):
    with CooperTrainer.from_config(build_config(settings), resume=resume) as trainer:
        trainer.fit(on_step=lambda step, _: trainer.request_stop() if step == stop_at else None)
    return trainer


def timeless(trainer):
    rows = read_metrics(trainer.directory)
    return [{name: value for name, value in row.items() if not name.startswith(MEASURED)} for row in rows]


def groups(trainer, step):
    lines = (trainer.directory / "rollouts" / f"{step:06d}.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    for completion in (one for group in found for one in group["completions"]):
        completion.pop("verify_s", None)
    return found


@pytest.fixture
def everyday(settings, tmp_path):
    """Two sets, one of them chats, with weights, dynamic sampling, a curriculum and a callback."""
    chats = tmp_path / "chats.jsonl"
    begun = {"role": "assistant", "content": "It is"}
    rows = [{"chat": [{"role": "user", "content": f"{n} + 1 ="}, begun], "answer": n + 1} for n in range(9)]
    chats.write_text("".join(json.dumps(row) + "\n" for row in rows))
    del settings["test_problems"]
    settings["problems"] = {**settings["problems"], "limit": 9, "gold": None, "weight": 3}
    return {
        **settings,
        "kind": "function",
        "rewards": [{"kind": "function", "function": "run.test_everyday_runs:ends"}],
        "more_problems": {"chats": {"source": str(chats), "messages": "chat", "weight": 1}},
        "curriculum": {"rest": 1},
        "evaluation": {"every": 0},
        "rollout": {"n": 4, "max_tokens": 12, "resample": 2},
        "callbacks": ["run.everyday_callbacks:Calls"],
        "steps": 6,
    }


def test_a_run_with_all_of_it_resumes_exactly(everyday, tmp_path):
    whole = fit({**everyday, "name": "whole"})
    half = {**everyday, "name": "half"}
    fit(half, stop_at=3)
    assert timeless(resumed := fit(half, resume=True)) == timeless(whole)
    for step in range(1, 7):
        assert groups(resumed, step) == groups(whole, step)
        chats = [group for group in groups(whole, step) if group["problem"].startswith("chats/")]
        assert all("".join(group["prompt"].split()).endswith("Itis") for group in chats)
    rows = timeless(whole)
    assert sum(row["rollout/resampled"] for row in rows) > 0
    assert all(row["rollout/resample_draws"] <= 2 for row in rows)
    assert [row["policy/usable_groups"] for row in rows] == [1 - row["rollout/unfilled_groups"] for row in rows]
    rates = [row["policy/learning_rate"] for row in rows]
    assert rates == pytest.approx([1e-3, 1e-3, 5e-4, 5e-4, 2.5e-4, 2.5e-4])
    models = [
        AutoModelForCausalLM.from_pretrained(tmp_path / name / "final" / "policy").state_dict()
        for name in ("whole", "half")
    ]
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])


def test_groups_that_teach_are_kept_and_only_the_others_are_replaced(everyday):
    config = build_config({**everyday, "rollout": {"n": 4, "max_tokens": 12, "resample": 1}})
    with CooperTrainer.from_config(config) as trainer:
        parts = trainer.parts
        first = parts.rollouts.take(parts.policy, 1, 5, last=True)
        scored = parts.reward.score(first.groups(), step=1)
        what = config.rollout, config.algorithm, parts.rollouts, parts.reward
        rollouts, paid, metrics = resampled(*what, 1, 5, first, scored)
    before, after = scored.rewards, paid.rewards
    spread = [max(rewards) > min(rewards) for rewards in before]
    for place, teaches in enumerate(spread):
        if teaches:
            assert (rollouts.problems[place], after[place]) == (first.problems[place], before[place])
            assert list(rollouts.texts[4 * place : 4 * place + 4]) == list(first.texts[4 * place : 4 * place + 4])
    assert sum(max(rewards) > min(rewards) for rewards in after) >= sum(spread)
    assert metrics["rollout/resampled"] == spread.count(False) / len(spread)
    starts = rollouts.offsets
    for place, group in enumerate(rollouts.groups()):
        tokens = rollouts.token_ids.lengths[starts[place] : starts[place + 1]]
        assert [answer.tokens for answer in group.answers] == list(tokens)
    assert len(rollouts.logprobs) == rollouts.token_ids.lengths.sum()


@pytest.mark.slow
def test_cooptimization_first_pays_the_resampled_groups(tmp_path):
    """Groups of other problems replaced some: those that the policy learns from are the ones that are paid anew."""
    changes = {"steps": 1, "problems_per_step": 12, "evaluation": {"every": 0}, "rollout": {"resample": 2}}
    changes |= {"cooptimization": {"before_policy": 0.0}, "problems": {"limit": 100}, "test_problems": {"limit": 8}}
    [row] = timeless(fit(arm_settings("cooper", tmp_path, 1, changes)))
    assert row["reward_model/false_accept_rate"] > 0  # else cooptimization would not come first
    assert "reward/mean_after" in row


def test_a_callback_is_called_in_order_and_sees_the_whole_record(settings):
    calls = Calls()
    config = build_config({**settings, "kind": "rule", "steps": 2})
    with CooperTrainer.from_config(config, callbacks=[calls]) as trainer:
        trainer.fit(on_step=lambda step, metrics: None)
    assert calls.seen == [
        ("evaluation", 0, True),
        ("before", 1, 1.0),
        ("after", 1, True),
        ("before", 2, 1.0),
        ("evaluation", 2, True),
        ("after", 2, True),
        ("save", 2, "000002"),
    ]


@pytest.mark.slow
def test_a_callback_that_ends_the_run_leaves_finished_models(settings):
    trainer = fit({**settings, "callbacks": ["run.everyday_callbacks:Stops"]})
    assert (trainer.completed_steps, trainer.interrupted) == (2, False)
    assert (trainer.directory / "final" / "policy" / "model.safetensors").is_file()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rollout.lag": 1}, "rollout.lag cannot change during a run"),
        ({"rollout.temperature": 0}, "temperature: 0 always takes the most likely token"),
        ({"reward_model.other": 1.0}, "reward_model.other cannot change during a run"),
        ({"algorithm.kl": {"coefficient": 0.1}}, "began without a KL term"),
    ],
)
def test_what_cannot_change_is_refused_and_nothing_has_changed(settings, change, message):
    settings["algorithm"] |= {"kl": None}
    with CooperTrainer.from_config(build_config({**settings, "kind": "rule"})) as trainer:
        with pytest.raises(InputError, match=message):
            trainer.change(change)
        assert trainer.config == build_config({**settings, "kind": "rule"})


def test_settings_cannot_change_on_save(settings):
    with pytest.raises(InputError, match="change them in after_step"):
        fit({**settings, "kind": "rule", "steps": 1, "callbacks": ["run.everyday_callbacks:ChangesOnSave"]})


@pytest.mark.parametrize(
    ("settings_of_it", "message"),
    [
        ({"callbacks": ["run.test_everyday_runs:ends"]}, "no subclass of cooper_rl.Callback"),
        ({"rollout": {"lag": 1, "resample": 1}}, "rollout.resample"),
        ({"more_problems": {"two": {"source": "arithmetic", "weight": 1}}}, "only some sets have a weight"),
        ({"problems": [{"source": "arithmetic"}]}, "further ones in more_problems"),
    ],
)
def test_settings_that_do_not_fit_are_named(settings, settings_of_it, message):
    if "lag" in settings_of_it.get("rollout", {}):
        loss = {"kind": "ppo_clip", "truncated_importance_sampling": 2.0}
        settings["algorithm"] |= {"recompute_old_logprobs": True, "loss": loss}
    with pytest.raises(InputError, match=message):
        CooperTrainer.from_config(build_config({**settings, **settings_of_it}))


def test_the_last_and_the_best_models_are_left_as_plain_folders(settings):
    settings["checkpoint"] = {"every": 1, "keep": 1, "keep_best": "reward/mean"}
    trainer = fit({**settings, "evaluation": {"every": 0}})
    best = trainer._checkpoints.best()
    assert best is not None
    for name, checkpoint in (("final", trainer.directory / "checkpoints" / "000004"), ("best", best[0])):
        for part, kind in (("policy", AutoModelForCausalLM), ("reward_model", AutoModelForSequenceClassification)):
            folder = trainer.directory / name / part
            assert not (folder / "trainer_state").exists()
            assert f"step {int(checkpoint.name)}" in (folder / "README.md").read_text()
            saved, there = (kind.from_pretrained(one).state_dict() for one in (folder, checkpoint / part))
            assert all(torch.equal(saved[key], there[key]) for key in saved)
    assert not (trainer.directory / "final" / "policy" / "trainer_state").exists()
