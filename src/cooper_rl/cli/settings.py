"""`--setting key=value` options, turned into a configuration record."""

from collections.abc import Mapping, Sequence
from typing import Any

from cooper_rl.config.settings import Record, Settings, check, with_overrides


def record_from(record: type[Record], values: Mapping[str, Any], settings: Sequence[str] = ()) -> Record:
    """A record from `values` with `settings` ("key=value", the value in YAML) on top; values that are None are unset.

    Raises InputError for an unknown key, naming the nearest, and for values that do not fit.
    """
    given = {key: value for key, value in values.items() if value is not None}
    return check(record, Settings(with_overrides(given, settings), "--setting"))
