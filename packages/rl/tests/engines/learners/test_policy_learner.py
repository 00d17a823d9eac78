from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import Gemma2Config, Gemma2ForCausalLM, GPT2Config, GPT2LMHeadModel

from cooper_rl.engines.base import PolicyBatch
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.losses.policy import PolicyLossInputs, PolicyObjective, PPOClip, policy_loss
from cooper_rl.records import Column

OBJECTIVE = PolicyObjective(loss=PPOClip(), kl=None)
PROMPTS = [7, 3, 12, 2, 5, 9]  # tokens
LENGTHS = np.array([4, 9, 1, 6, 5, 2])  # of the completions


def config(**changes) -> LearnerConfig:
    return LearnerConfig(**({"model": "tiny", "learning_rate": 1e-2, "device": "cpu"} | changes))


def random_rows() -> Column:
    random = np.random.default_rng(1)
    return Column.of([random.integers(64, size=p + c) for p, c in zip(PROMPTS, LENGTHS, strict=True)])


def rows_of(flat: np.ndarray) -> list[torch.Tensor]:
    """The values of each completion."""
    return list(torch.from_numpy(flat).split(LENGTHS.tolist()))


def plain_logprobs(model, row: np.ndarray, completion: int, temperature: float = 1.0) -> torch.Tensor:
    tokens = torch.from_numpy(row.astype(np.int64))
    logits = model(tokens[None]).logits[0, :-1] / temperature
    return logits.log_softmax(-1).gather(-1, tokens[1:, None])[:, 0][-completion:]


def random_batch(model) -> PolicyBatch:
    """Old log-probabilities that differ a little from the model's, so ratios differ from 1 and some are clipped."""
    rows, random = random_rows(), np.random.default_rng(2)
    with torch.no_grad():
        exact = torch.cat([plain_logprobs(model, row, c).double() for row, c in zip(rows, LENGTHS, strict=True)])
    old = exact.numpy() + 0.2 * random.standard_normal(LENGTHS.sum())
    advantages = np.repeat([1.0, -2.0, 3.0, -4.0, 5.0, -6.0], LENGTHS)
    return PolicyBatch(rows, LENGTHS, advantages, np.full(LENGTHS.sum(), 1 / LENGTHS.sum()), old, old)


def gradients(model) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters()}


def plain_gradients(model, batch: PolicyBatch) -> tuple[float, dict[str, torch.Tensor]]:
    """The reference: every row alone and unpadded, one loss over all rows, one backward pass."""
    model.zero_grad()
    losses = []
    numbers = (rows_of(values) for values in (batch.old_logprobs, batch.advantages, batch.weights))
    for row, c, old, advantages, weights in zip(batch.token_ids, LENGTHS, *numbers, strict=True):
        inputs = PolicyLossInputs(
            logprobs=plain_logprobs(model, row, c)[None],
            old_logprobs=old[None],
            sampler_logprobs=old[None],
            advantages=advantages[None],
            weights=weights[None],
            mask=torch.ones(1, int(c), dtype=torch.bool),
        )
        losses.append(policy_loss(inputs, OBJECTIVE.loss, None).loss)
    total = torch.stack(losses).sum()
    total.backward()
    found = gradients(model)
    model.zero_grad()
    return total.item(), found


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("budget", [1, 30, 10_000])
def test_micro_batches_give_the_gradient_of_the_full_batch(make_policy, budget, tied):
    model = make_policy(torch.float64, tie_word_embeddings=tied)
    batch = random_batch(model)
    loss, expected = plain_gradients(model, batch)
    learner = TorchPolicyLearner(model, config(tokens_per_microbatch=budget), 10)
    metrics = learner.forward_backward(batch, OBJECTIVE)
    assert metrics["loss"] == pytest.approx(loss, abs=1e-10)
    torch.testing.assert_close(gradients(model), expected, rtol=0, atol=1e-10)


def test_metrics_do_not_depend_on_the_micro_batches(make_policy):
    found = []
    for budget in (1, 10_000):
        learner = TorchPolicyLearner(make_policy(torch.float64), config(tokens_per_microbatch=budget), 10)
        found.append(learner.forward_backward(random_batch(learner.model), OBJECTIVE))
    assert len(found[0]) > 1
    assert found[0] == pytest.approx(found[1], abs=1e-10)


def test_gradient_checkpointing_changes_nothing_but_memory(make_policy):
    model = make_policy(torch.float64)
    batch = random_batch(model)
    _, expected = plain_gradients(model, batch)
    learner = TorchPolicyLearner(model, config(gradient_checkpointing=True), 10)
    calls = []
    model.base_model.layers[0].mlp.register_forward_pre_hook(lambda *_: calls.append(torch.is_grad_enabled()))
    learner.forward_backward(batch, OBJECTIVE)
    torch.testing.assert_close(gradients(model), expected, rtol=0, atol=1e-10)
    assert len(calls) == 2, "the layer should be computed again in the backward pass"
    assert not any(module.training for module in model.modules())
    assert model(torch.tensor([[1, 2]]), use_cache=True).past_key_values.get_seq_length() == 2


def gpt2() -> GPT2LMHeadModel:
    return GPT2LMHeadModel(GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=64))


def gemma2() -> Gemma2ForCausalLM:
    """A model that caps its logits, so its head cannot be applied to the hidden states alone."""
    return Gemma2ForCausalLM(
        Gemma2Config(
            vocab_size=64,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            final_logit_softcapping=0.5,
        )
    )


@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2"])
def test_logprobs_equal_a_plain_forward_of_each_row(make_policy, kind, temperature):
    torch.manual_seed(0)
    model = {"llama": make_policy, "gpt2": gpt2, "gemma2": gemma2}[kind]()
    rows = random_rows()
    learner = TorchPolicyLearner(model, config(tokens_per_microbatch=40), 10)
    found = rows_of(learner.logprobs(rows, LENGTHS, temperature))
    with torch.no_grad():
        for row, c, values in zip(rows, LENGTHS, found, strict=True):
            torch.testing.assert_close(values, plain_logprobs(model, row, c, temperature), rtol=0, atol=1e-5)


def test_updates_raise_the_probability_of_advantaged_completions(make_policy):
    learner = TorchPolicyLearner(make_policy(), config(learning_rate=1e-3), 10)
    batch = random_batch(learner.model)
    before = learner.logprobs(batch.token_ids, LENGTHS)
    batch = replace(batch, advantages=np.ones(LENGTHS.sum()), old_logprobs=before)
    learner.forward_backward(batch, OBJECTIVE)
    metrics = learner.optim_step()
    assert metrics["grad_norm"] > 0
    assert metrics["learning_rate"] == 1e-3
    assert learner.logprobs(batch.token_ids, LENGTHS).sum() > before.sum()
    assert all(p.grad is None for p in learner.model.parameters())


def test_only_matrices_decay(make_policy):
    """With a zero gradient AdamW only decays a weight, by lr * weight_decay of it."""
    learner = TorchPolicyLearner(make_policy(), config(learning_rate=0.1, weight_decay=0.5), 10)
    before = {name: p.detach().clone() for name, p in learner.model.named_parameters()}
    for p in learner.model.parameters():
        p.grad = torch.zeros_like(p)
    learner.optim_step()
    for name, p in learner.model.named_parameters():
        expected = before[name] * (0.95 if p.ndim >= 2 else 1.0)
        torch.testing.assert_close(p.detach(), expected, msg=name)


def test_bfloat16_autocast_keeps_weights_and_gradients_in_float32(make_policy):
    learner = TorchPolicyLearner(make_policy(), config(autocast="bfloat16"), 10)
    exact = TorchPolicyLearner(make_policy(), config(), 10)
    rough, fine = (x.logprobs(random_rows(), LENGTHS) for x in (learner, exact))
    assert 0 < np.abs(rough - fine).max() < 0.2
    learner.forward_backward(random_batch(learner.model), OBJECTIVE)
    assert {p.dtype for p in learner.model.parameters()} == {torch.float32}
    assert {p.grad.dtype for p in learner.model.parameters() if p.grad is not None} == {torch.float32}
