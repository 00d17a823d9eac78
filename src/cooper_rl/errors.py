"""The kinds of error that a user can act on, and the remedy for a mistyped name."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Bad input: a config key, a data row, a model folder. The command line prints it and exits with code 2.

    The message names the file, line and field, if there are any, and the remedy.
    """


class MissingExtraError(ImportError):
    """An optional library is missing. The message says which extra to install."""


class EngineLost(RuntimeError):
    """A process of the engine is dead or silent, and its state is gone: open the engine again, load a checkpoint."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str, cutoff: float = 0.6) -> str:
    """The known name nearest to a mistyped one, as a question, or else another remedy."""
    nearest = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"did you mean {nearest[0]!r}?" if nearest else otherwise
