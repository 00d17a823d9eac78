"""The two kinds of error that a user can act on."""


class InputError(ValueError):
    """Bad input: a config key, a data row, a model folder. The command line prints it and exits with code 2.

    The message names the file, line and field, if there are any, and the remedy.
    """


class MissingExtraError(ImportError):
    """An optional library is missing. The message says which extra to install."""
