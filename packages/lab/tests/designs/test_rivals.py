"""Other ways to learn a reward beside the policy: known values in float64, and gradients against plain code."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from cooper_lab.designs import prime
from cooper_lab.designs.best_worst import entropy, r2m_loss
from cooper_lab.designs.cross_entropy import CrossEntropy
from cooper_lab.designs.fpo import fpo
from cooper_lab.designs.grad_reg import GradientRegularised, regularised
from cooper_lab.designs.implicit import MARK, ImplicitEngine, implicit_folder, split_at
from cooper_lab.designs.implicit_learner import ImplicitLearner
from cooper_lab.designs.ipvrm import IPVRMEngine, group_terms
from cooper_lab.designs.noise import NoiseCorrected, is_drawn, refuses_right
from cooper_rl import InputError, LearnerConfig, Ragged, load_policy, load_tokenizer
from cooper_rl.engines.base import LabelledBatch
from cooper_rl.engines.config import SamplingParams, ScorerConfig
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.losses.reward_model import BinaryCrossEntropyLoss
from cooper_rl.engines.reward_input import RewardModelInput
from cooper_rl.policy.advantages import GRPO
from cooper_rl.policy.estimators import DrGRPO

F64 = torch.float64


def of(*values):
    return torch.tensor(values, dtype=F64)


def padded(*rows):
    return torch.nn.utils.rnn.pad_sequence([of(*row) for row in rows], batch_first=True)


RIGHT, WRONG = (1.0, -1.0, 2.0), (0.0, -2.0)


def test_known_value_of_primes_loss():
    engine = ImplicitEngine(beta=0.05)
    losses = engine.outcome_losses(padded(RIGHT, WRONG), of(3, 2), of(1, 0), of(0, 0))
    assert losses.mean().item() == pytest.approx(0.6444, abs=5e-5)


def test_known_returns_of_prime_by_its_paper_and_by_its_code():
    rewards = [0.05 * np.array(row) for row in (RIGHT, WRONG)]
    first, second = prime.returns_of_paper(rewards, [2])
    assert first.tolist() == pytest.approx([0.25, 0.15, 0.15])
    assert second.tolist() == pytest.approx([-1 / 6, -2 / 15])
    first, second = prime.returns_of_code(rewards, [2])
    assert first.tolist() == pytest.approx([0.25, 2 / 15, 0.2167], abs=5e-5)
    assert second.tolist() == pytest.approx([-1 / 6, -0.1833], abs=5e-5)


def test_in_verls_form_beta_cancels_and_the_last_token_is_unpaid():
    rewards = [np.array(row) for row in (RIGHT, WRONG)]
    small, large = (prime.Prime(form="verl").returns([b * row for row in rewards], [2]) for b in (0.05, 5.0))
    for one, other in zip(small, large, strict=True):
        assert one == pytest.approx(other, rel=1e-3)
    changed = [row.copy() for row in rewards]
    changed[0][-1] = 99.0
    assert prime.Prime(form="verl").returns(changed, [2])[0].tolist() == pytest.approx(large[0].tolist(), rel=1e-3)


def test_a_completion_without_others_has_no_process_advantage():
    assert prime.returns_of_paper([np.array(RIGHT)], [1])[0].tolist() == [0, 0, 0]


def test_known_values_of_ipvrm():
    engine = IPVRMEngine()
    ratios, lengths, margins = padded((0.2, 0.4, -0.3)), of(3), of(5)
    assert (engine.beta * ratios.cumsum(1))[0].tolist() == pytest.approx([2, 6, 3])
    assert engine.logits(ratios, lengths).item() == pytest.approx(1)
    assert engine.outcome_losses(ratios, lengths, of(1), margins).item() == pytest.approx(3.0646, abs=5e-5)
    assert engine.outcome_losses(ratios, lengths, of(0), margins).item() == pytest.approx(7.0012, abs=5e-5)


def test_known_weights_and_margins_of_ipvrm():
    weights, margins = group_terms([1, 0, 0, 0], 5.0)
    assert weights == pytest.approx([2, 2 / 3, 2 / 3, 2 / 3])
    assert margins == pytest.approx([6.0986, 3.9014, 3.9014, 3.9014], abs=5e-5)
    weights, margins = group_terms([0, 0], 5.0)
    assert margins == pytest.approx([-8.8155] * 2, abs=5e-5)
    assert weights == [1, 1]
    ratios = padded((0.1,)).requires_grad_()
    IPVRMEngine().outcome_losses(ratios, of(1), of(0), of(margins[0])).sum().backward()
    assert ratios.grad is not None
    assert abs(ratios.grad.item()) < 0.005  # of at most 10: nothing is learned where all are wrong


def test_the_gradients_of_both_implicit_losses_are_plain_weights_of_token_log_probabilities():
    """beta (sigmoid(s) - O) for PRIME, -(y beta / T) sum_{k >= t} sigmoid(-z_k) / k for IPVRM, z = y V / t - m."""
    ratios = padded((0.2, 0.4, -0.3)).requires_grad_()
    ImplicitEngine().outcome_losses(ratios, of(3), of(1), of(0)).sum().backward()
    assert ratios.grad is not None
    sigma = torch.sigmoid(of(0.05 * 0.3))
    assert ratios.grad[0].tolist() == pytest.approx([(0.05 * (sigma - 1)).item()] * 3)
    ratios = padded((0.2, 0.4, -0.3)).requires_grad_()
    IPVRMEngine().outcome_losses(ratios, of(3), of(0), of(5)).sum().backward()
    z = -of(2, 3, 1) - 5
    weights = torch.sigmoid(-z) / of(1, 2, 3)
    assert ratios.grad is not None
    torch.testing.assert_close(ratios.grad[0], 10 / 3 * weights.flip(0).cumsum(0).flip(0))


@pytest.fixture
def implicit(tiny_models, tmp_path):
    """A learner in float64 that has moved away from its start, its input, and the start."""
    folder = implicit_folder(tiny_models / "policy", tmp_path / "implicit")
    config = ScorerConfig(model=str(folder), input="chat", device="cpu", learning_rate=1e-2)
    learner = ImplicitLearner.from_config(config, 4)
    start = TorchPolicyLearner.from_config(LearnerConfig(model=str(tiny_models / "policy"), device="cpu"), 0, False)
    learner.model.double()
    start.model.double()
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in learner.model.parameters():
            weight.add_(0.02 * torch.randn_like(weight))
    return learner, RewardModelInput.of(config, learner.tokenizer), start


ROWS = [("7 + 12 = ?", "7+12=19 answer: 19", 1.0), ("7 + 12 = ?", "7+12=18", 0.0), ("3 - 1", "3-1=2", 1.0)]


def plain_ratio(model, reference, tokenizer, question, text):
    prompt, completion = (tokenizer(part)["input_ids"] for part in (f"{question}\n", text))
    completion = [*completion, tokenizer.eos_token_id]
    ids = torch.tensor([[*prompt, *completion]])
    logs = [F.log_softmax(m(ids).logits[0, len(prompt) - 1 : -1], -1) for m in (model, reference)]
    picked = [log[range(len(completion)), completion] for log in logs]
    return picked[0] - picked[1].detach()


def test_an_implicit_model_reads_what_the_policy_wrote_and_its_gradient_is_that_of_plain_code(implicit):
    learner, encoder, start = implicit
    learner.scoring_by(ImplicitEngine(beta=0.5), start)
    inputs, labels = [encoder.encode(question, "", text) for question, text, _ in ROWS], [row[2] for row in ROWS]
    logits = [0.5 * plain_ratio(learner.model, start.model, learner.tokenizer, *row[:2]).sum() for row in ROWS]
    assert learner.score(inputs).tolist() == pytest.approx([logit.item() for logit in logits], rel=1e-5)
    loss = F.binary_cross_entropy_with_logits(torch.stack(logits), of(*labels))
    expected = torch.autograd.grad(loss, list(learner.model.parameters()))
    metrics = learner.forward_backward(LabelledBatch(inputs, labels, [1 / 3] * 3), BinaryCrossEntropyLoss())
    assert metrics["loss"] == pytest.approx(loss.item())
    for parameter, gradient in zip(learner.model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-7)  # RMSNorm is in float32


def test_an_implicit_model_that_has_learned_nothing_accepts_nothing(tiny_models, tmp_path, implicit):
    _, encoder, start = implicit
    folder = implicit_folder(tiny_models / "policy", tmp_path / "fresh")
    learner = ImplicitLearner.from_config(ScorerConfig(model=str(folder), input="chat", device="cpu"), 4)
    learner.model.double()
    scores = learner.scoring_by(ImplicitEngine(), start).score([encoder.encode(row[0], "", row[1]) for row in ROWS])
    assert scores.tolist() == [0, 0, 0]


def test_an_implicit_model_reads_the_end_where_the_policys_padding_is_its_end_of_sequence(tiny_models, tmp_path):
    policy, folder = tmp_path / "policy", tmp_path / "implicit"
    tokenizer, model = load_tokenizer(str(tiny_models / "policy")), load_policy(str(tiny_models / "policy"))
    tokenizer.pad_token, model.config.pad_token_id = tokenizer.eos_token, tokenizer.eos_token_id
    tokenizer.save_pretrained(policy)
    model.save_pretrained(policy)
    implicit_folder(policy, folder)
    encoder = RewardModelInput.of(ScorerConfig(model=str(folder), input="chat"), load_tokenizer(str(folder)))
    prompt, completion = split_at(getattr(load_policy(str(folder)).config, MARK), encoder.encode("3 - 1", "", "3-1=2"))
    assert prompt == tokenizer("3 - 1\n")["input_ids"]
    assert completion == [*tokenizer("3-1=2")["input_ids"], tokenizer.eos_token_id]


def test_known_values_of_r2m():
    assert entropy(of(0, 1, 2, 3)).item() == pytest.approx(1.0875, abs=5e-5)
    assert entropy(of(5, 15, 25, 35)).item() == pytest.approx(1.0875, abs=5e-5)
    assert r2m_loss(of(0, 1, 2, 3)).item() == pytest.approx(0.3602, abs=1e-4)


def test_varls_discriminator_ends_at_its_known_optimum():
    """Cross-entropy of demonstrations (.5, .5) above accepted samples (.9, .1), over every pair by its probability."""
    p, q, logits = of(0.5, 0.5), of(0.9, 0.1), torch.zeros(2, dtype=F64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=100, tolerance_grad=1e-12)

    def closure():
        optimizer.zero_grad()
        i, j = torch.cartesian_prod(torch.arange(2), torch.arange(2)).T
        loss = CrossEntropy().pair_loss(logits[i], logits[j], p[i] * q[j]).loss
        loss.backward()
        return loss

    optimizer.step(closure)
    assert torch.sigmoid(logits).tolist() == pytest.approx((p / (p + q)).tolist(), abs=5e-5)
    assert (q * torch.sigmoid(logits)).sum().item() == pytest.approx(0.4048, abs=5e-5)
    assert (0.5 - 0.25 * ((p - q) ** 2 / (p + q)).sum()).item() == pytest.approx(0.4048, abs=5e-5)


def test_known_values_of_the_noise_correction():
    config = NoiseCorrected(accepts_wrong=0.1, refuses_right=0.2)

    class Context:
        correct = Ragged(of(0, 1), (2,))

    low, high = config.score(Context()).rewards.flat.tolist()  # pyright: ignore[reportArgumentType]
    assert (low, high) == (pytest.approx(-0.1429, abs=5e-5), pytest.approx(1.2857, abs=5e-5))
    assert 0.9 * low + 0.1 * high == pytest.approx(0)
    assert 0.2 * low + 0.8 * high == pytest.approx(1)
    assert refuses_right(3, 12, 0.5) == pytest.approx(1 / 3, abs=1e-4)


def test_the_correction_is_the_rule_under_grpo_and_a_factor_under_dr_grpo():
    rule = Ragged.of([[1.0, 0, 0, 1], [0, 0, 1.0]], F64)
    corrected = rule.like((rule.flat - 0.1) / 0.7)
    assert GRPO().advantages(corrected).flat.tolist() == pytest.approx(GRPO().advantages(rule).flat.tolist(), abs=2e-6)
    exact = (rule.flat - rule.expand(rule.mean())) / rule.expand(rule.std())
    same = (corrected.flat - rule.expand(corrected.mean())) / rule.expand(corrected.std())
    torch.testing.assert_close(exact, same, rtol=0, atol=4e-16)
    torch.testing.assert_close(DrGRPO().advantages(corrected).flat, DrGRPO().advantages(rule).flat / 0.7)


def test_appeals_draw_their_share_whatever_else_is_scored():
    drawn = [is_drawn(f"question {i}", 0.3) for i in range(4000)]
    assert sum(drawn) / 4000 == pytest.approx(0.3, abs=0.03)
    assert is_drawn("question 7", 0.3) == drawn[7]


def test_known_value_of_fpo_and_its_relaxed_form_where_nobody_knows():
    assert fpo(of(0), of(5), 1.0).item() == -5
    known = fpo(of(1, 1, 0.5), of(5, 5, 5), 0.1, of(1, 0, math.nan))
    assert known.tolist() == pytest.approx([1, 0.5, 0])


def quadratic(theta):
    """The gradient of (4 x^2 + y^2) / 2."""
    return of(4, 1) * theta


def test_a_regularised_policy_learns_in_float32(tiny_models):
    engine, settings = GradientRegularised(), {"model": str(tiny_models / "policy"), "device": "cpu"}
    with pytest.raises(InputError, match="autocast: off"):
        engine.check(LearnerConfig.model_validate(settings | {"autocast": "bfloat16"}), SamplingParams())
    engine.check(LearnerConfig.model_validate(settings), SamplingParams())
    assert engine.policy(LearnerConfig.model_validate(settings), 1).config.autocast == "off"


def test_known_values_of_gradient_regularisation():
    theta = of(1, 1)
    first = quadratic(theta)
    found = regularised(first, quadratic(theta + 1e-3 * first), 0.01, 1e-3)
    assert found.tolist() == pytest.approx([4.16, 1.01])
    clip = first / first.norm()
    exact = regularised(clip, quadratic(theta + 1e-3 * clip) - first + clip, 0.01, 1e-3)
    assert exact.tolist() == pytest.approx([1.0089, 0.2450], abs=1e-4)
    second = quadratic(theta + 1e-3 * clip)
    biased = regularised(clip, second / second.norm(), 0.01, 1e-3)
    assert biased.tolist() == pytest.approx([0.9706, 0.2409], abs=2e-4)
