"""Turns the options `--setting key=value`, `--rule` and `--reward-model` into records and names."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cooper_rl.config.strict_yaml import parse_yaml
from cooper_rl.config_loading import Record, Settings, check, with_overrides
from cooper_rl.errors import InputError

if TYPE_CHECKING:
    from cooper_rl.rules.rule import RuleConfig

RuleOption = Annotated[
    str,
    typer.Option(
        help="The rule: maths, exact, choice, numeric, package.module:function, or settings such as "
        "'{kind: numeric, relative: 0.01}'."
    ),
]


def record_from(record: type[Record], values: Mapping[str, Any], settings: Sequence[str] = ()) -> Record:
    """A record made from `values` (None means unset), overridden by `settings` ("key=value", with a YAML value).

    Raises InputError for an unknown key, with the nearest known one, and for values that do not fit.
    """
    given = {key: value for key, value in values.items() if value is not None}
    return check(record, Settings(with_overrides(given, settings), "--setting"))


def rule_from(text: str, workers: int = 1, timeout_s: float = 5.0) -> "RuleConfig":
    """The rule that the option `--rule` names or describes. `workers` and `timeout_s` are the defaults for `maths`.

    Raises InputError for a rule that does not exist and for settings that do not fit.
    """
    from cooper_rl.rules.rule import OneRule  # noqa: PLC0415 - `cooper --help` stays quick

    try:
        values, _ = parse_yaml(text)
    except ValueError as error:
        raise InputError(f"--rule {text!r}: {error}") from error
    values = values if isinstance(values, dict) else {"kind": text.strip()}
    if values.get("kind", "maths") == "maths":
        values = {"workers": workers, "timeout_s": timeout_s, **values}
    return check(OneRule, Settings({"rule": values}, "--rule")).rule


def named_models(given: Sequence[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Folders of reward models by name, from FOLDER or NAME=FOLDER; the first without a name is called rm.

    Raises InputError for a name that is no identifier, or is used twice or `taken`.
    """
    folders: dict[str, str] = {}
    for number, text in enumerate(given):
        name, separator, folder = text.partition("=")
        name, folder = (name, folder) if separator else ("rm" if number == 0 else f"rm{number + 1}", text)
        if not name.isidentifier() or name in folders or name in taken:
            raise InputError(
                f"--reward-model {text!r}: {name!r} is not a valid name, or is used already; write NAME=FOLDER"
            )
        folders[name] = folder
    return folders
