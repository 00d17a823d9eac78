"""Graders of final answers: rules, functions and judges. No answer can stall or crash them."""

from cooper_base import __version__ as __version__
from cooper_base.public_names import public_names

__getattr__, __dir__ = public_names(__name__, __file__)
