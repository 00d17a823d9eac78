"""Cooper: reinforcement learning for language models in which the reward model learns alongside the policy."""

from cooper_base import __version__ as __version__
from cooper_base.public_names import public_names

__getattr__, __dir__ = public_names(__name__, __file__)
