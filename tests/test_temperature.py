"""The policy of a run is softmax(logits / rollout.temperature): in samples, ratios, gradient and metrics alike."""

import pytest
import torch

from cooper_rl import CooperTrainer, InputError, build_config
from cooper_rl.engines.local.policy import TorchPolicyLearner
from cooper_rl.step import cooper_step


def length(problem, completion):
    """Something to learn for a policy that never answers right."""
    return completion.tokens / 10 + sum(map(ord, completion.text[:1])) % 7


@pytest.fixture
def half(settings):
    """A run at temperature 0.5."""
    return {
        **settings,
        "kind": "rule",
        "rollout": {**settings["rollout"], "temperature": 0.5},
        "algorithm": {"min_spread": 0.0, "kl": None, "advantages": {"kind": "dr_grpo"}},
        "extra_rewards": [{"function": "test_temperature:length"}],
    }


def test_a_steps_samples_and_its_gradient_are_of_one_distribution(half, monkeypatch):
    config = build_config(half)
    with CooperTrainer.from_config(config) as trainer:
        policy, gradients = trainer.parts.policy, []
        assert isinstance(policy, TorchPolicyLearner)
        optim_step = policy.optim_step

        def watched():
            gradients.extend(p.grad.clone() for p in policy.model.parameters() if p.grad is not None)
            return optim_step()

        monkeypatch.setattr(policy, "optim_step", watched)
        before = [p.detach().clone() for p in policy.model.parameters()]
        done = cooper_step(config, trainer.parts, trainer.probes, step=1, seed=0)
        with torch.no_grad():
            for parameter, value in zip(policy.model.parameters(), before, strict=True):
                parameter.copy_(value)

        rows, losses = [c for group in done.sampled for c in group.completions], []
        tokens = sum(len(c.token_ids) for c in rows)
        for p, group in enumerate(done.sampled):
            for i, c in enumerate(group.completions):
                logits = policy.model(torch.tensor([group.prompt_ids + c.token_ids])).logits[0]
                scaled = (logits[len(group.prompt_ids) - 1 : -1] / 0.5).log_softmax(-1)
                logprobs = scaled.gather(-1, torch.tensor(c.token_ids)[:, None])[:, 0]
                torch.testing.assert_close(torch.tensor(c.logprobs), logprobs.detach(), rtol=0, atol=1e-4)
                losses.append(-done.advantages[p, i] * logprobs.sum() / tokens)
        expected = torch.autograd.grad(torch.stack(losses).sum(), list(policy.model.parameters()))
    flat, true = (torch.cat([g.flatten() for g in each]).double() for each in (gradients, expected))
    assert true.norm() > 1e-3
    assert (flat - true).norm() / true.norm() < 1e-4
    surprise = -sum(sum(c.logprobs) for c in rows) / tokens
    assert done.metrics["rollout/entropy_estimate"] == pytest.approx(surprise)
    assert done.metrics["policy/mismatch_kl"] < 1e-6


@pytest.mark.parametrize("setting", [{"top_p": 0.9}, {"top_k": 5}, {"min_p": 0.1}, {"min_tokens": 2}])
def test_filters_that_truncate_the_samples_are_told_once(half, caplog, setting):
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
