"""The real rule verifier and the tiny reward model of the tests of pairs."""

from reward.conftest import encoder as encoder
from reward.conftest import make_learner as make_learner
from reward.conftest import verifier as verifier
