"""Rewards and shapings of a user's own derive from the base that has the defaults of what they leave out."""

import pytest

from cooper_rl import Config, InputError, build_config


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
    changed = {**settings, setting: [{"kind": "reward.test_own_bases:Doubles"}]}
    with pytest.raises(InputError, match=rf"derive it from cooper_rl\.{base}"):
        build_config(changed)
