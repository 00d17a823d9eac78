"""The loop on the embedded world with real but tiny models: what a run records, and that it resumes exactly."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from cooper_audit.run.run_record import read_metrics
from cooper_base.clock import MEASURED
from cooper_rl import CooperTrainer, InputError, build_config
from in_process import model_of
from slow_members import first_fast


def _fit(settings, resume=False):
    with CooperTrainer.from_config(build_config(settings), resume=resume) as trainer:
        trainer.fit()
    return trainer


def _timeless(directory):
    return [{k: v for k, v in row.items() if not k.startswith(MEASURED)} for row in read_metrics(directory)]


@pytest.mark.parametrize("kind", first_fast(["rule", "cooper", "static", "cooper_model"], fast=2))
def test_every_kind_of_run_records_its_steps(settings, kind, monkeypatch):
    monkeypatch.setattr("cooper_rl.run.recorder.LOGPROBS_EVERY", 2)
    trainer = _fit({**settings, "kind": kind, "steps": 2})
    rows = read_metrics(trainer.directory)
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert {"test/rule_avg", "test/gold_avg"} <= rows[0].keys() & rows[2].keys()
    assert {"reward/mean", "gold/accuracy", "rule/accuracy", "time/step"} <= rows[1].keys()
    assert ("reward_model/probe_drift" in rows[1]) == (kind in ("cooper", "cooper_model"))
    files = [trainer.directory / "rollouts" / f"00000{step}.jsonl" for step in (1, 2)]
    first, rollouts = ([json.loads(line) for line in file.read_text().splitlines()] for file in files)
    assert len(rollouts) == 4
    completion = rollouts[0]["completions"][0]
    assert {"text", "verdict", "reward", "advantage", "gold", "stop_reason"} <= completion.keys()
    assert len(completion["pieces"]) == len(completion["logprobs"]) == completion["tokens"]
    assert "logprobs" not in first[0]["completions"][0]


@pytest.mark.parametrize("kind", ["cooper", pytest.param("cooper_model", marks=pytest.mark.slow)])
def test_a_resumed_run_equals_the_uninterrupted_one(settings, tmp_path, kind):
    settings = {**settings, "kind": kind}
    whole = _fit({**settings, "name": "whole"})
    half = {**settings, "name": "half"}
    with CooperTrainer.from_config(build_config(half)) as trainer:
        # Stop at step 3, after the checkpoint of step 2: the resumed run must do step 3 again and drop its record.
        trainer.fit(on_step=lambda step, metrics: trainer.request_stop() if step == 2 else None)
        trainer.recorder.metrics(3, {"lost": 1.0})
    assert trainer.interrupted
    resumed = _fit(half, resume=True)
    assert _timeless(resumed.directory) == _timeless(whole.directory)
    weights = [
        AutoModelForCausalLM.from_pretrained(tmp_path / n / "checkpoints" / "000004" / "policy")
        for n in ("whole", "half")
    ]
    for one, other in zip(weights[0].parameters(), weights[1].parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.slow
def test_a_warm_up_counts_steps_however_many_updates_a_step_has(settings):
    """Half the rate after the first of two steps of warm-up, for both models, also if the run is resumed there."""
    settings = {**settings, "algorithm": {"minibatches": 2}, "evaluation": {"every": 0}, "checkpoint": {"every": 1}}
    settings["cooptimization"] = {**settings["cooptimization"], "epochs": 2}
    for model in ("policy", "reward_model"):
        settings[model] = {**settings[model], "warmup_steps": 2}
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        trainer.fit(on_step=lambda step, metrics: trainer.request_stop() if step == 1 else None)
    rows = read_metrics(_fit(settings, resume=True).directory)
    for model in ("policy", "reward_model"):
        assert [row[f"{model}/learning_rate"] for row in rows] == pytest.approx([5e-4, 1e-3, 1e-3, 1e-3])


def test_rewards_of_a_step_come_from_the_reward_model_before_its_update(settings):
    settings |= {"kind": "cooper_model"}
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        model = trainer.parts.reward.learning
        assert model is not None
        before = {name: p.clone() for name, p in model_of(model.learner).named_parameters()}
        metrics = trainer.step()
        changed = any(not torch.equal(p, before[name]) for name, p in model_of(model.learner).named_parameters())
        assert changed
        rows = [json.loads(line) for line in (trainer.directory / "rollouts" / "000001.jsonl").read_text().splitlines()]
        with torch.no_grad():
            for name, p in model_of(model.learner).named_parameters():
                p.copy_(before[name])
        inputs = [model.encoder.encode(r["question"], r["answer"], c["text"]) for r in rows for c in r["completions"]]
        expected = model.learner.score(inputs).sigmoid().tolist()
    recorded = [c["reward"] for row in rows for c in row["completions"]]
    assert recorded == pytest.approx(expected, abs=1e-5)
    assert metrics["pairs/count"] > 0


def test_saved_models_are_plain_hugging_face_folders(settings):
    trainer = _fit({**settings, "steps": 2})
    folder = trainer.directory / "checkpoints" / "000002"
    policy = AutoModelForCausalLM.from_pretrained(folder / "policy")
    reward_model = AutoModelForSequenceClassification.from_pretrained(folder / "reward_model")
    assert reward_model.config.num_labels == 1
    for saved, trained in zip(policy.parameters(), model_of(trainer.parts.policy).parameters(), strict=True):
        assert torch.equal(saved, trained.cpu())


def test_a_new_run_does_not_write_over_an_old_one(settings):
    _fit({**settings, "kind": "rule", "steps": 1})
    no_model = {"model": "/missing"}  # the error comes before any model is read
    with pytest.raises(InputError, match="holds a run already"):
        _fit({**settings, "kind": "rule", "steps": 1, "policy": no_model})


def test_the_metrics_of_several_updates_are_their_means(settings, monkeypatch):
    settings = {**settings, "kind": "static", "algorithm": {"min_spread": 0.0, "minibatches": 2}}
    with CooperTrainer.from_config(build_config({**settings, "evaluation": {"every": 0}})) as trainer:
        policy, seen = trainer.parts.policy, []
        optim_step = policy.optim_step
        monkeypatch.setattr(policy, "optim_step", lambda: seen.append(optim_step()) or seen[-1])
        metrics = trainer.step()
    assert len(seen) == 2
    assert seen[0]["grad_norm"] != seen[1]["grad_norm"]
    assert metrics["policy/grad_norm"] == pytest.approx((seen[0]["grad_norm"] + seen[1]["grad_norm"]) / 2)


def test_groups_without_spread_leave_the_policy_alone(settings):
    settings = {**settings, "kind": "static", "algorithm": {"min_spread": 1.0, "kl": None}, "evaluation": {"every": 0}}
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        before = [p.clone() for p in model_of(trainer.parts.policy).parameters()]
        metrics = trainer.step()
        assert metrics["policy/usable_groups"] == 0
        for old, new in zip(before, model_of(trainer.parts.policy).parameters(), strict=True):
            assert torch.equal(old, new)
