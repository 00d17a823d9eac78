"""The policy of a run is softmax(logits / rollout.temperature), in samples, ratios, gradient and metrics alike."""

import pytest
import torch

from cooper_rl import CooperTrainer, InputError, build_config
from cooper_rl.records import Column
from cooper_rl.step import cooper_step
from in_process import model_of
from slow_members import first_fast


def length(problem, completion):
    """A reward that a policy can learn from even if it never answers right."""
    return completion.tokens / 10 + sum(map(ord, completion.text[:1])) % 7


@pytest.fixture
def half(settings):
    """A run at temperature 0.5."""
    return {
        **settings,
        "kind": "rule",
        "rollout": {**settings["rollout"], "temperature": 0.5},
        "algorithm": {"min_spread": 0.0, "kl": None, "advantages": {"kind": "dr_grpo"}},
        "rewards": [{"kind": "rule"}, {"kind": "function", "function": "test_temperature:length"}],
    }


def test_a_steps_samples_and_its_gradient_are_of_one_distribution(half, monkeypatch):
    config = build_config(half)
    with CooperTrainer.from_config(config) as trainer:
        policy, gradients = trainer.parts.policy, []
        model = model_of(policy)
        optim_step = policy.optim_step

        def watched():
            gradients.extend(p.grad.clone() for p in model.parameters() if p.grad is not None)
            return optim_step()

        monkeypatch.setattr(policy, "optim_step", watched)
        before = [p.detach().clone() for p in model.parameters()]
        done = cooper_step(config, trainer.parts, step=1, seed=0)
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), before, strict=True):
                parameter.copy_(value)

        rollouts, losses = done.rollouts, []
        tokens, flat_advantages = len(rollouts.logprobs), done.advantages.flat
        logprob_rows = Column(rollouts.logprobs, rollouts.token_ids.offsets)
        for i, p in enumerate(rollouts.problem_of):
            prompt, completion = rollouts.prompts[p].tolist(), rollouts.token_ids[i].tolist()
            logits = model(torch.tensor([prompt + completion])).logits[0]
            scaled = (logits[len(prompt) - 1 : -1] / 0.5).log_softmax(-1)
            logprobs = scaled.gather(-1, torch.tensor(completion)[:, None])[:, 0]
            torch.testing.assert_close(torch.from_numpy(logprob_rows[i]), logprobs.detach(), rtol=0, atol=1e-4)
            losses.append(-flat_advantages[i] * logprobs.sum() / tokens)
        expected = torch.autograd.grad(torch.stack(losses).sum(), list(model.parameters()))
    flat, true = (torch.cat([g.flatten() for g in each]).double() for each in (gradients, expected))
    assert true.norm() > 1e-3
    assert (flat - true).norm() / true.norm() < 1e-4
    surprise = -rollouts.logprobs.sum(dtype=float) / tokens
    assert done.metrics["rollout/entropy_estimate"] == pytest.approx(surprise)
    assert done.metrics["policy/kl_to_old"] < 1e-6  # the learner's before the update, to the sampler's
    assert "policy/mismatch_kl" not in done.metrics  # nothing else has computed the old ones


@pytest.mark.parametrize("setting", first_fast([{"top_p": 0.9}, {"top_k": 5}, {"min_tokens": 2}]))
def test_filters_that_truncate_the_samples_are_reported_once(half, caplog, setting):
    config = build_config({**half, "steps": 2, "evaluation": {"every": 0}, "rollout": {**half["rollout"], **setting}})
    with CooperTrainer.from_config(config) as trainer:
        trainer.fit()
    told = [record.message for record in caplog.records if "never drawn" in record.message]
    ((name, value),) = setting.items()
    assert len(told) == 1
    assert f"rollout ({name}: {value})" in told[0]


def test_a_temperature_alone_is_no_reason_to_warn(half, caplog):
    with CooperTrainer.from_config(build_config(half)):
        assert "never drawn" not in caplog.text


def test_temperature_zero_is_for_evaluation_only(half):
    with pytest.raises(InputError, match=r"rollout\.temperature: 0 always takes the most likely token"):
        build_config({**half, "rollout": {**half["rollout"], "temperature": 0}})
    config = build_config({**half, "steps": 1, "evaluation": {"every": 1, "k": 2, "temperature": 0}})
    with CooperTrainer.from_config(config) as trainer:
        trainer.fit()
    assert trainer.completed_steps == 1
