"""Lag 1: a step learns from what the policy before its last update drew, corrected for that, and resumes exactly."""

import json
import shutil

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from cooper_audit.run.run_record import read_metrics
from cooper_base.clock import MEASURED
from cooper_rl import CooperTrainer, InputError, build_config
from cooper_rl.engines.base import Sampler, sample_at_once
from cooper_rl.engines.config import SamplingParams
from cooper_rl.run.build import describe_correction
from in_process import model_of


@pytest.fixture
def lagging(settings):
    return {**settings, "rollout": {**settings["rollout"], "lag": 1}}


def _fit(settings, resume=False, on_step=None):
    with CooperTrainer.from_config(build_config(settings), resume=resume) as trainer:
        trainer.fit(on_step)
    return trainer


def _timeless(directory):
    return [{k: v for k, v in row.items() if not k.startswith(MEASURED)} for row in read_metrics(directory)]


@pytest.mark.parametrize(
    "algorithm",
    [{"recompute_old_logprobs": False}, {"loss": {"kind": "ppo_clip", "truncated_importance_sampling": None}}],
)
def test_lag_without_the_correction_is_refused_with_the_remedy(settings, algorithm):
    told = r"rollout.lag: 1 learns from completions of an older policy.*leave out"
    with pytest.raises((InputError, ValidationError), match=told):
        build_config({**settings, "rollout": {"lag": 1}, "algorithm": algorithm})


VLLM, OF_CLUSTER = {"kind": "vllm", "url": "http://localhost:1"}, {"kind": "cluster", "samplers": {"kind": "vllm"}}


@pytest.mark.parametrize(
    ("changes", "on"),
    [
        ({}, False),
        ({"engine": {"kind": "cluster"}}, False),  # its own sampler is the learner's
        ({"engine": VLLM}, True),
        ({"engine": OF_CLUSTER}, True),
        ({"rollout": {"lag": 1}}, True),
        ({"rollout": {"lag": 1}, "algorithm": {"loss": {"kind": "cispo"}}}, True),
    ],
)
def test_importance_sampling_is_on_where_it_is_needed_and_nowhere_else(settings, changes, on):
    config = build_config({**settings, **changes})
    algorithm, loss = config.algorithm, config.algorithm.loss
    assert algorithm.recompute_old_logprobs is on
    assert (loss.truncated_importance_sampling, loss.drift) == ((2.0, "product") if on else (None, None))
    again = build_config(config.model_dump(mode="json"))  # as in a run's record, and for a resume
    assert again.algorithm == algorithm


def test_the_users_own_correction_wins(settings):
    loss = {"kind": "ppo_clip", "truncated_importance_sampling": 5.0, "drift": None}
    config = build_config({**settings, "engine": VLLM, "algorithm": {"loss": loss}})
    assert (config.algorithm.loss.truncated_importance_sampling, config.algorithm.loss.drift) == (5.0, None)
    without = build_config({**settings, "engine": VLLM, "algorithm": {"recompute_old_logprobs": False}})
    assert without.algorithm.loss.truncated_importance_sampling is None
    assert "nothing corrects for it" in describe_correction(without.algorithm)


def test_the_first_lines_say_what_corrects_for_the_lag(lagging, caplog):
    caplog.set_level("INFO", "cooper_rl")
    with CooperTrainer.from_config(build_config({**lagging, "evaluation": {"every": 0}})):
        pass
    (said,) = [record.getMessage() for record in caplog.records if "older policy" in record.getMessage()]
    assert said == (
        "rollout.lag: 1 learns from completions of an older policy: tokens are weighted by importance sampling, with "
        "at most 2; completions are masked if the product of these weights passes 3; set algorithm.loss to change it"
    )


@pytest.mark.slow
def test_each_step_learns_from_the_policy_before_and_says_so(lagging):
    directory = _fit({**lagging, "kind": "cooper_model"}).directory
    rows = read_metrics(directory)[1:]
    assert [row["rollout/lag"] for row in rows] == [0, 1, 1, 1]
    versions = []
    for step in range(1, 5):
        lines = (directory / "rollouts" / f"{step:06d}.jsonl").read_text().splitlines()
        versions.append({c["version"] for line in lines for c in json.loads(line)["completions"]})
    assert versions == [{0}, {0}, {1}, {2}]
    assert rows[0]["policy/mismatch_kl"] < 1e-9  # what was drawn by another policy has other log-probabilities
    assert min(row["policy/mismatch_kl"] for row in rows[1:]) > 1e-6
    assert all(row["policy/ratio"] == pytest.approx(1, abs=1e-6) for row in rows)


def test_the_samplers_log_probabilities_are_those_of_the_older_policy(lagging):
    with CooperTrainer.from_config(build_config({**lagging, "kind": "rule", "evaluation": {"every": 0}})) as trainer:
        parts, before = trainer.parts, []
        for step in (1, 2):
            before.append([p.detach().clone() for p in model_of(parts.policy).parameters()])
            rollouts = parts.rollouts.take(parts.policy, step, seed=step, last=False)
            with torch.no_grad():
                for parameter in model_of(parts.policy).parameters():
                    parameter.add_(0.1)
        with torch.no_grad():
            for parameter, value in zip(model_of(parts.policy).parameters(), before[0], strict=True):
                parameter.copy_(value)
        every = np.arange(len(rollouts.token_ids))
        drawn = parts.policy.logprobs(rollouts.sequences(every), rollouts.token_ids.lengths, 1.0)
    np.testing.assert_allclose(rollouts.logprobs, drawn, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("stop_after", [1, 3])
def test_a_resumed_run_equals_the_uninterrupted_one(lagging, stop_after):
    """The completions that were drawn ahead are in the checkpoint."""
    lagging = {**lagging, "kind": "cooper"}
    whole = _fit({**lagging, "name": "whole"})
    half = {**lagging, "name": "half"}
    with CooperTrainer.from_config(build_config(half)) as trainer:
        trainer.fit(on_step=lambda step, metrics: trainer.request_stop() if step == stop_after else None)
    folder = trainer.directory / "checkpoints" / f"{stop_after:06d}"
    assert (folder / "pending_rollouts.safetensors").is_file()
    resumed = _fit(half, resume=True)
    assert _timeless(resumed.directory) == _timeless(whole.directory)
    for step in range(1, 5):
        name = f"rollouts/{step:06d}.jsonl"
        assert _without_costs(resumed.directory / name) == _without_costs(whole.directory / name)
    weights = [list(model_of(trainer.parts.policy).parameters()) for trainer in (whole, resumed)]
    assert all(map(torch.equal, *weights))
    assert not (whole.directory / "checkpoints" / "000004" / "pending_rollouts.safetensors").exists()


CALLS = []


def glitch(problem, completion):
    """1 in the third step of four problems with four completions, once."""
    CALLS.append(completion)
    return float(len(CALLS) == 40)


@pytest.mark.slow
@pytest.mark.parametrize("stop_after", [pytest.param(3, marks=pytest.mark.slow), 4])
def test_after_a_rollback_the_groups_drawn_ahead_are_drawn_anew(lagging, stop_after):
    """In a run that is resumed as well: from the checkpoint it went back to, and from the next one."""
    rule = {"metric": "function/glitch", "above": 0, "action": "rollback"}
    rewards = [{"kind": "rule"}, {"kind": "function", "function": "test_lag:glitch"}]
    run = {**lagging, "kind": "rule", "steps": 5, "evaluation": {"every": 0}, "rewards": rewards, "watch": [rule]}
    CALLS.clear()
    whole = _fit({**run, "name": "whole"})
    events = [json.loads(line) for line in (whole.directory / "events.jsonl").read_text().splitlines()]
    assert [event["back_to"] for event in events if "back_to" in event] == [2]
    assert [row["rollout/lag"] for row in read_metrics(whole.directory)] == [0, 1, 0, 1, 1]
    CALLS.clear()
    with CooperTrainer.from_config(build_config({**run, "name": "half"})) as trainer:
        trainer.fit(lambda step, found: trainer.request_stop() if step == stop_after and len(CALLS) > 48 else None)
    if stop_after == 3:  # killed before a checkpoint of this step
        shutil.rmtree(trainer.directory / "checkpoints" / "000003")
    resumed = _fit({**run, "name": "half"}, resume=True)
    assert _timeless(resumed.directory) == _timeless(whole.directory)


def test_a_failure_is_told_when_the_completions_are_wanted():
    class Failing(Sampler):
        """Without `submit`, as the native sampler."""

        def sample(self, prompts, n, params, seed):
            raise FloatingPointError("diverged")

        def sync_weights(self, learner): ...

    future = sample_at_once(Failing(), [[1]], 1, SamplingParams(), 0)
    with pytest.raises(FloatingPointError, match="diverged"):
        future.result()


def _without_costs(rollouts):
    """The lines of a file of rollouts without the CPU time of the verdicts, which is measured."""
    lines = [json.loads(line) for line in rollouts.read_text().splitlines()]
    for line in lines:
        for completion in line["completions"]:
            completion.pop("verify_s")
    return lines
