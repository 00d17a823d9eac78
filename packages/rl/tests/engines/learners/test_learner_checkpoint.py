import json
import logging
import math

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from cooper_base.errors import InputError
from cooper_rl.engines.base import PairBatch, PolicyBatch
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.losses.policy import PolicyObjective, PPOClip
from cooper_rl.engines.losses.reward_model import PairwiseLoss
from cooper_rl.records import Column


def config(**changes) -> LearnerConfig:
    settings = {"model": "tiny", "learning_rate": 1e-2, "warmup_steps": 3, "schedule": "cosine", "device": "cpu"}
    return LearnerConfig(**(settings | changes))


def train_policy(learner: TorchPolicyLearner, steps: range) -> None:
    for step in steps:
        generator = torch.Generator().manual_seed(step)
        token_ids = Column.of(torch.randint(64, (3, 8), generator=generator).tolist())
        lengths = np.full(3, 5)
        old = learner.logprobs(token_ids, lengths)
        weights = np.full(15, math.nan if step == 1 else 1 / 15)  # the second update is skipped
        batch = PolicyBatch(token_ids, lengths, np.repeat([1.0, -1.0, 0.5], 5), weights, old, old)
        learner.forward_backward(batch, PolicyObjective(loss=PPOClip(), kl=None))
        learner.optim_step()


@pytest.mark.parametrize("tied", [False, True])
def test_a_resumed_policy_equals_an_uninterrupted_one_bit_for_bit(make_policy, tmp_path, tied):
    through = TorchPolicyLearner(make_policy(tie_word_embeddings=tied), config(), 6)
    train_policy(through, range(4))

    first = TorchPolicyLearner(make_policy(tie_word_embeddings=tied), config(), 6)
    train_policy(first, range(2))
    first.save(tmp_path / "checkpoint")
    second = TorchPolicyLearner(make_policy(seed=5, tie_word_embeddings=tied), config(), 6)
    second.load(tmp_path / "checkpoint")
    train_policy(second, range(2, 4))

    torch.testing.assert_close(second.model.state_dict(), through.model.state_dict(), rtol=0, atol=0)
    assert second.steps == 4
    assert second.skipped_updates == 1
    assert second.learning_rate == through.learning_rate


def test_a_resumed_reward_model_equals_an_uninterrupted_one_bit_for_bit(reward_model_folder, tmp_path):
    def train(learner: TorchRewardModelLearner, steps: range) -> None:
        for step in steps:
            learner.forward_backward(PairBatch([[step, 2, 3]], [[step, 3]], [1.0]), PairwiseLoss(anchor=0.1))
            learner.optim_step()

    settings = config(model=str(reward_model_folder))
    through = TorchRewardModelLearner.from_config(settings, 6)
    train(through, range(4))
    first = TorchRewardModelLearner.from_config(settings, 6)
    train(first, range(2))
    first.save(tmp_path / "checkpoint")
    # A resuming run may also name the checkpoint as its model.
    second = TorchRewardModelLearner.from_config(config(model=str(tmp_path / "checkpoint")), 6)
    second.load(tmp_path / "checkpoint")
    train(second, range(2, 4))
    torch.testing.assert_close(second.model.state_dict(), through.model.state_dict(), rtol=0, atol=0)


def test_loading_goes_back_to_the_saved_state_and_forgets_pending_gradients(make_policy, tmp_path):
    learner = TorchPolicyLearner(make_policy(), config(), 6)
    learner.save(tmp_path)  # before any step there are no moments
    start = {name: value.clone() for name, value in learner.model.state_dict().items()}
    train_policy(learner, range(1))
    moved = {name: value.clone() for name, value in learner.model.state_dict().items()}
    learner.model.get_parameter("lm_head.weight").grad = torch.ones(64, 32)
    learner.load(tmp_path)
    torch.testing.assert_close(learner.model.state_dict(), start, rtol=0, atol=0)
    train_policy(learner, range(1))
    torch.testing.assert_close(learner.model.state_dict(), moved, rtol=0, atol=0)


def test_a_checkpoint_is_a_plain_folder_without_pickles(policy_folder, tmp_path):
    learner = TorchPolicyLearner.from_config(config(model=str(policy_folder)), 6)
    train_policy(learner, range(1))
    learner.save(tmp_path / "saved")
    names = {
        path.relative_to(tmp_path / "saved").as_posix() for path in (tmp_path / "saved").rglob("*") if path.is_file()
    }
    assert {path.rpartition(".")[2] for path in names} <= {"json", "safetensors", "jinja"}
    assert {"model.safetensors", "trainer_state/optimizer.safetensors", "trainer_state/state.json"} <= names
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "saved")
    torch.testing.assert_close(model.state_dict(), learner.model.state_dict(), rtol=0, atol=0)
    assert AutoTokenizer.from_pretrained(tmp_path / "saved").encode("a1") == load_tokenizer(str(policy_folder)).encode(
        "a1"
    )
    assert json.loads((tmp_path / "saved/trainer_state/state.json").read_text())["steps"] == 1


def test_a_folder_that_is_no_checkpoint_is_an_input_error(make_policy, policy_folder):
    with pytest.raises(InputError, match="not a checkpoint"):
        TorchPolicyLearner(make_policy(), config(), 6).load(policy_folder)


def test_a_checkpoint_of_another_model_is_an_input_error(make_policy, tmp_path):
    learner = TorchPolicyLearner(make_policy(), config(), 6)
    train_policy(learner, range(1))
    learner.save(tmp_path)
    with pytest.raises(InputError, match="does not fit this model"):
        TorchPolicyLearner(make_policy(hidden_size=64), config(), 6).load(tmp_path)


def test_a_changed_run_length_is_reported(make_policy, tmp_path, caplog):
    TorchPolicyLearner(make_policy(), config(), 6).save(tmp_path)
    with caplog.at_level(logging.WARNING, logger="cooper_rl"):
        TorchPolicyLearner(make_policy(), config(), 9).load(tmp_path)
    assert "saved in a run of 6 steps; the learning rate now follows this run's 9" in caplog.text
