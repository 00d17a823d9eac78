"""Rewards and shapings of a user's own derive from the base that has the defaults of what they leave out."""

import pytest

from cooper_base.public_names import public_name
from cooper_rl import Config, InputError, RewardConfig, RuleConfig, build_config


class Doubles(Config):
    """A shaping but for its base."""

    def build(self):
        return self

    def shape(self, rewards, context):
        return rewards


@pytest.mark.parametrize(
    ("setting", "base"), [("rewards", "RewardConfig"), ("shaping", "ShapingConfig")], ids=["reward", "shaping"]
)
def test_a_record_of_another_base_is_told_which_one_to_take(settings, setting, base):
    changed = {**settings, setting: [{"kind": "test_own_bases:Doubles"}]}
    with pytest.raises(InputError, match=rf"derive it from cooper_rl\.{base}"):
        build_config(changed)


def test_a_class_is_named_after_the_lowest_package_that_has_it_among_its_public_names():
    assert public_name(RewardConfig) == "cooper_rl.RewardConfig"
    assert public_name(RuleConfig) == "cooper_verify.RuleConfig"
    assert public_name(Doubles) == f"{__name__}.Doubles"
