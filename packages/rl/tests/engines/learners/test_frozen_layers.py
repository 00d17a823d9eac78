"""`frozen_layers`: the lower part of a model stays as it is, and the backward pass ends above it."""

import pytest
import torch
from safetensors import safe_open

from cooper_rl.engines.base import PairBatch
from cooper_rl.engines.config import LearnerConfig, LoraConfig
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.losses.reward_model import PairwiseLoss

LOWER = ("model.embed_tokens", "model.layers.0.", "model.layers.1.")
LAYERS = {"num_hidden_layers": 3}
PAIRS = PairBatch([[5, 6, 7, 8], [5, 6, 9]], [[5, 6, 1], [5, 2, 3, 4, 9]], [0.5, 0.5])
LOSS = PairwiseLoss(anchor=0.1)


def config(**changes) -> LearnerConfig:
    return LearnerConfig(**({"model": "tiny", "learning_rate": 1e-2, "device": "cpu", "frozen_layers": 2} | changes))


def is_lower(name: str) -> bool:
    return name.startswith(LOWER)


def weights(learner) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in learner.model.state_dict().items()}


@pytest.mark.parametrize("changes", [{}, {"attention": "padded"}, {"gradient_checkpointing": True}])
def test_an_update_is_the_plain_one_without_the_lower_gradient(make_reward_model, changes):
    plain = make_reward_model(torch.float64, **LAYERS)
    learner = TorchRewardModelLearner(make_reward_model(torch.float64, **LAYERS), config(**changes), 10)
    before, ends = weights(learner), []
    for number in range(3):
        layer = learner.model.get_submodule(f"model.layers.{number}")
        layer.register_forward_hook(lambda *call: ends.append(call[2].requires_grad))
    learner.forward_backward(PAIRS, LOSS)
    assert ends[:3] == [False, False, True]  # so nothing below is kept for a backward pass

    logits = torch.stack([plain(torch.tensor([row])).logits[0, 0] for row in [*PAIRS.positives, *PAIRS.negatives]])
    positives, negatives = logits.chunk(2)
    LOSS.pair_loss(positives, negatives, logits.new_tensor(PAIRS.weights)).loss.backward()
    upper = {name: p for name, p in plain.named_parameters() if not is_lower(name)}
    for name, parameter in learner.model.named_parameters():
        if is_lower(name):
            assert parameter.grad is None
        else:
            torch.testing.assert_close(parameter.grad, upper[name].grad, rtol=0, atol=1e-12)

    learner.optim_step()
    torch.nn.utils.clip_grad_norm_(upper.values(), 1.0)
    decay = [
        {"params": [p for p in upper.values() if (p.ndim >= 2) == wide], "weight_decay": 0.01 * wide}
        for wide in (True, False)
    ]
    torch.optim.AdamW(decay, lr=1e-2).step()
    for name, value in learner.model.state_dict().items():
        if is_lower(name):
            assert torch.equal(value, before[name])
        else:
            assert not torch.equal(value, before[name])
            torch.testing.assert_close(value, plain.state_dict()[name], rtol=0, atol=1e-10)


def train(learner: TorchRewardModelLearner, updates: int) -> None:
    for _ in range(updates):
        learner.forward_backward(PAIRS, LOSS)
        learner.optim_step()


def test_a_resumed_model_equals_an_uninterrupted_one_and_has_no_moments_below(make_reward_model, tmp_path):
    through = TorchRewardModelLearner(make_reward_model(**LAYERS), config(), 10)
    train(through, 4)
    first = TorchRewardModelLearner(make_reward_model(**LAYERS), config(), 10)
    train(first, 2)
    first.save(tmp_path)
    with safe_open(tmp_path / "trainer_state" / "optimizer.safetensors", "pt") as moments:
        assert {name.split(":")[0] for name in moments.keys()} == {  # noqa: SIM118 - not a mapping
            name for name, _ in first.model.named_parameters() if not is_lower(name)
        }
    second = TorchRewardModelLearner(make_reward_model(seed=5, **LAYERS), config(), 10)
    second.load(tmp_path)
    train(second, 2)
    torch.testing.assert_close(second.model.state_dict(), through.model.state_dict(), rtol=0, atol=0)


def test_a_checkpoint_of_a_whole_model_goes_on_with_its_upper_layers(make_reward_model, tmp_path):
    whole = TorchRewardModelLearner(make_reward_model(**LAYERS), config(frozen_layers=0), 10)
    train(whole, 2)
    whole.save(tmp_path)
    upper = TorchRewardModelLearner(make_reward_model(seed=5, **LAYERS), config(), 10)
    upper.load(tmp_path)
    before = weights(upper)
    train(upper, 1)
    upper.save(tmp_path / "again")
    assert {name for name in before if torch.equal(before[name], upper.model.state_dict()[name])} == {
        name for name in before if is_lower(name)
    }
    with safe_open(tmp_path / "again" / "trainer_state" / "optimizer.safetensors", "pt") as moments:
        assert not [name for name in moments.keys() if is_lower(name)]  # noqa: SIM118 - not a mapping


def test_adapters_of_the_lower_layers_stay_at_zero(make_reward_model):
    learner = TorchRewardModelLearner(make_reward_model(**LAYERS), config(lora=LoraConfig(rank=2)), 10)
    train(learner, 1)
    moved = {name for name, p in learner.model.named_parameters() if ".lora_B" in name and p.abs().max() > 0}
    assert moved
    assert all(".layers.2." in name for name in moved)


def test_a_policys_head_that_is_its_embedding_stays_too(make_policy):
    learner = TorchPolicyLearner(make_policy(tie_word_embeddings=True, **LAYERS), config(), 10)
    assert learner.model.get_input_embeddings() is not learner.model.get_output_embeddings()
    trained = {
        name for name, parameter in learner.model.named_parameters(remove_duplicate=False) if parameter.requires_grad
    }
    assert "model.layers.2.mlp.up_proj.weight" in trained
    assert "lm_head.weight" not in trained
