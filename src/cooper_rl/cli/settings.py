"""`--setting key=value` options, turned into a configuration record."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from cooper_rl.configuration import Config
from cooper_rl.errors import InputError

Record = TypeVar("Record", bound=Config)


def record_from(record: type[Record], values: Mapping[str, Any], settings: Sequence[str] = ()) -> Record:
    """A record from `values` with `settings` ("key=value", the value in YAML) on top; values that are None are unset.

    Raises InputError for an unknown key, naming the nearest, and for values that do not fit.
    """
    given = {key: value for key, value in values.items() if value is not None}
    for item in settings:
        key, separator, raw = item.partition("=")
        if not separator:
            raise InputError(f"--setting {item!r}: expected key=value, such as learning_rate=1e-5")
        if key not in record.model_fields:
            nearest = get_close_matches(key, record.model_fields, n=1)
            remedy = f"did you mean {nearest[0]!r}?" if nearest else f"known: {', '.join(record.model_fields)}"
            raise InputError(f"--setting: unknown key {key!r}; {remedy}")
        given[key] = yaml.safe_load(raw)
    try:
        return record.model_validate(given)
    except ValidationError as error:
        raise InputError("; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())) from error
