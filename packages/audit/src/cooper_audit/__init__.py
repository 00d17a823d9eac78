"""Is a training run being hacked? Runs and their verdicts, audits of any trainer's rollouts, attacks on any reward."""

from cooper_base import __version__ as __version__
from cooper_base.public_names import public_names

__getattr__, __dir__ = public_names(__name__, __file__)
