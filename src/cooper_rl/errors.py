"""The two kinds of fault a user can act on."""


class InputError(ValueError):
    """Bad input: a config key, a data row, a model folder. The command line prints it and exits with code 2.

    The message names the file, line and field where there is one, and the remedy.
    """


class MissingExtraError(ImportError):
    """An optional library is needed. The message says which extra to install."""
