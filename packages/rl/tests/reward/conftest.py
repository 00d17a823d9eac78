"""The real rule verifier and a tiny real reward model."""

from small_reward_model import encoder as encoder
from small_reward_model import make_learner as make_learner
from small_reward_model import verifier as verifier
