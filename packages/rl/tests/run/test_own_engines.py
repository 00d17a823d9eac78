"""Engines of a user's own: what they may leave out, and what is said of those that lack something."""

from typing import ClassVar

import pytest
import torch
from safetensors.torch import load_file, save_file

from cooper_rl import Config, CooperTrainer, Engine, InputError, RewardModelLearner, build_config
from cooper_rl.engines.local import LocalEngine


class WithoutSampler(Engine):
    def policy(self, config, total_steps, trainable=True):
        return LocalEngine().policy(config, total_steps, trainable)

    def reward_model(self, config, total_steps, trainable=True):
        return LocalEngine().reward_model(config, total_steps, trainable)


class WithAPlainSampler(WithoutSampler):
    def sampler(self, policy, max_rows):
        return object()


class BagOfTokens(RewardModelLearner):
    """A number for each token, whose mean is the logit. It is no Hugging Face model."""

    def __init__(self, learning_rate: float):
        self.weights = torch.zeros(2000, requires_grad=True)
        self.optimizer = torch.optim.Adam([self.weights], lr=learning_rate)

    def logits(self, rows):
        return torch.stack([self.weights[torch.tensor(row)].mean() for row in rows])

    def score(self, token_ids):
        return self.logits(token_ids).detach()

    def forward_backward(self, batch, loss):
        margins = self.logits(batch.positives) - self.logits(batch.negatives)
        total = (torch.nn.functional.softplus(-margins) * torch.tensor(batch.weights)).sum()
        total.backward()
        return {"loss": total.item()}

    def optim_step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()
        return {"grad_norm": 0.0, "learning_rate": 0.0, "skipped_updates": 0.0}

    def save(self, directory):
        directory.mkdir(parents=True, exist_ok=True)
        save_file({"weights": self.weights.detach()}, directory / "bag.safetensors")

    def load(self, directory):
        with torch.no_grad():
            self.weights.copy_(load_file(directory / "bag.safetensors")["weights"])


class WithABag(Engine):
    reward_model_has_head: ClassVar[bool] = False

    def policy(self, config, total_steps, trainable=True):
        return LocalEngine().policy(config, total_steps, trainable)

    def reward_model(self, config, total_steps, trainable=True):
        return BagOfTokens(config.learning_rate)

    def sampler(self, policy, max_rows):
        return LocalEngine().sampler(policy, max_rows)


class NoEngine(Config):
    """Settings, and nothing that an engine needs."""


HERE = "test_own_engines"


def test_an_engine_that_lacks_a_method_is_refused_with_the_settings(settings):
    with pytest.raises(InputError, match="WithoutSampler cannot serve as engine: it has no sampler"):
        build_config({**settings, "engine": {"kind": f"{HERE}:WithoutSampler"}})


def test_an_engine_of_another_base_is_told_which_one_to_take(settings):
    with pytest.raises(InputError, match=r"derive it from cooper_rl\.Engine"):
        build_config({**settings, "engine": {"kind": f"{HERE}:NoEngine"}})


def test_a_sampler_that_is_no_sampler_is_refused_before_the_first_step(settings):
    config = build_config({**settings, "kind": "rule", "engine": {"kind": f"{HERE}:WithAPlainSampler"}})
    with pytest.raises(InputError, match=r"sampler has built a object; derive that class from cooper_rl\.Sampler"):
        CooperTrainer.from_config(config)


def test_a_reward_model_that_is_no_hugging_face_model_is_trained_saved_and_resumed(settings):
    settings = {**settings, "steps": 1, "engine": {"kind": f"{HERE}:WithABag"}}
    CooperTrainer.from_config(build_config(settings)).fit()
    trainer = CooperTrainer.from_config(build_config({**settings, "steps": 2}), resume=True)
    trainer.fit()
    assert trainer.completed_steps == 2
