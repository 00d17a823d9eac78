"""Engines of a user's own: what they may leave out, and what is said of those that lack something."""

import pytest

from cooper_rl import Config, CooperTrainer, Engine, InputError, build_config
from cooper_rl.engines.local import LocalEngine


class WithoutSampler(Engine):
    def policy(self, config, total_steps, trainable=True):
        return LocalEngine().policy(config, total_steps, trainable)

    def reward_model(self, config, total_steps, trainable=True):
        return LocalEngine().reward_model(config, total_steps, trainable)


class WithAPlainSampler(WithoutSampler):
    def sampler(self, policy, max_rows):
        return object()


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
