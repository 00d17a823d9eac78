"""Turns a YAML file and `key=value` overrides into a checked record, with error messages that name the remedy."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os.path import isfile
from pathlib import Path
from typing import Any, TypeVar, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from cooper_base.config.base import NESTED, Config, Places, is_mapping, kinds_of, record_of_kind, records_of
from cooper_base.config.strict_yaml import Lines, parse_yaml
from cooper_base.errors import InputError, did_you_mean, no_file

SomeConfig = TypeVar("SomeConfig", bound=Config)


@dataclass(frozen=True)
class Settings:
    """Settings before they are checked, with their source, the line of each key and the keys that `overrides` set."""

    values: dict[str, Any]
    source: str = "config"
    lines: Lines = field(default_factory=dict)
    overrides: Sequence[str] = ()

    def place(self, key_path: tuple[str, ...]) -> str:
        """Where the setting, or the nearest one around it, was given: a line of the file, or the command line."""
        given = {tuple(override.partition("=")[0].split(".")): override for override in self.overrides}
        inside = [override for path, override in given.items() if path[: len(key_path)] == key_path]
        if inside and key_path not in self.lines:  # a group that only the command line has
            return f"command line, {inside[0]}"
        for length in range(len(key_path), 0, -1):
            if (override := given.get(key_path[:length])) is not None:
                return f"command line, {override}"
            if key_path[:length] in self.lines and not any(key_path[:n] in given for n in range(1, length)):
                return f"{self.source}:{self.lines[key_path[:length]]}"
        return self.source


def read_settings(path: str | Path, overrides: Sequence[str] = ()) -> Settings:
    """Read a YAML file and apply `overrides` such as "policy.learning_rate=1e-5".

    Raises InputError for a missing file, text that is not a YAML mapping, or a malformed override.
    """
    path = Path(path)
    if not path.is_file():
        raise no_file(path, (".yaml", ".yml"), "configuration file")
    try:
        values, lines = parse_yaml(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:  # also for text that is not UTF-8
        raise InputError(f"{path}: {error}") from error
    values = {} if values is None else values
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected a mapping of settings, found {type(values).__name__}")
    return Settings(with_overrides(values, overrides), str(path), lines, overrides)


def with_overrides(values: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Set every "key=value" in `values`, in place, and return them. The value is YAML.

    Raises InputError for a malformed override.
    """
    for override in overrides:
        key, separator, raw = override.partition("=")
        if not separator and isfile(override):
            raise InputError(f"{override}: this command reads one file; behind it stand settings such as key=value")
        if not separator or not key:
            raise InputError(f"override {override!r}: expected key=value, such as policy.learning_rate=1e-5")
        *parents, leaf = key.split(".")
        target = values
        for parent in parents:
            target = target.setdefault(parent, {})
            if not isinstance(target, dict):
                raise InputError(f"override {override!r}: {parent} is not a group of settings")
        try:
            target[leaf], _ = parse_yaml(raw)
        except ValueError as error:
            why = " ".join(str(error).split())
            raise InputError(f"override {override!r}: {why}; quote the whole override for the shell") from error
    return values


def check_settings(record: type[SomeConfig], settings: Settings) -> SomeConfig:
    """The record that the settings describe.

    Raises InputError for any setting that does not fit. The message names file and line and, for an unknown key, the
    nearest known one.
    """
    if not isinstance(settings.values, Mapping):
        kind = type(settings.values).__name__
        raise InputError(f"{settings.source}: expected a mapping of settings, found {kind}; load_config reads a file")
    try:
        values, places = record.expand(dict(settings.values))
    except ValueError as error:
        raise InputError(f"{settings.source}: {error}") from error
    for key_path, message in _misfits(values, record, places):
        raise InputError(f"{settings.place(key_path)}: {message}")
    try:
        return record.model_validate(values)
    except ValidationError as error:
        issues = _unfolded(error.errors())
        messages = dict.fromkeys(_describe(issue, settings, places) for issue in issues)  # sets may share a setting
        raise InputError("\n".join(messages)) from error


Misfit = tuple[tuple[str, ...], str]  # the path of a key that does not fit, and the message about it


def _misfits(
    settings: dict[str, Any],
    record: type[Config],
    places: Places,
    at: tuple[str, ...] = (),
    ignored: Sequence[str] = (),
) -> Iterator[Misfit]:
    """Unknown keys and records without a `kind`, which pydantic would report without a remedy."""
    for key, value in settings.items():
        if key in ignored:
            continue
        field, path = record.model_fields.get(key), (*at, str(key))
        if field is None:
            written = _written(path, places)
            yield written, _unknown_key_message(written, record)
            continue
        elements: dict[str, Any] = {}
        if isinstance(value, dict):
            elements = {str(name): element for name, element in value.items()} if is_mapping(field) else {"": value}
        elif isinstance(value, list):
            elements = {str(index): element for index, element in enumerate(value)}
        for name, element in elements.items():
            if isinstance(element, dict):
                yield from _misfits_of_one(element, field, places, (*path, name) if name else path)


def _misfits_of_one(value: dict[str, Any], field: FieldInfo, places: Places, at: tuple[str, ...]) -> Iterator[Misfit]:
    """The misfits of a nested record. If several records are possible, `kind` selects one."""
    written = _written(at, places)
    candidates = records_of(field)
    kinds = {c.model_fields["kind"].default: c for c in candidates if "kind" in c.model_fields}
    registry = kinds_of(field)
    kind = value.get("kind", registry and registry.default)
    if len(kinds) > 1 and kind is None:
        yield written, _missing_kind_message(value, kinds, written)
    try:
        chosen = record_of_kind(field, kind)
    except InputError as error:  # the module or class that `kind` names
        yield written, f"{'.'.join(written)}.kind: {error}"
        return
    if chosen is None and len(candidates) == 1 and not ("kind" in value and registry):
        chosen = candidates[0]
    if chosen is not None:
        yield from _misfits(value, chosen, places, at, ignored=() if "kind" in chosen.model_fields else ("kind",))


def _written(key_path: tuple[str, ...], places: Places) -> tuple[str, ...]:
    """The path at which the user wrote a setting."""
    for expanded, written in places.items():
        if key_path[: len(expanded)] == expanded:
            return (*written, *key_path[len(expanded) :])
    return key_path


def _unknown_key_message(key_path: tuple[str, ...], record: type[Config]) -> str:
    if len(key_path) == 1 and key_path[0] in record.stands_for:
        return f"{key_path[0]}: {record.stands_for[key_path[0]]}"
    fields = list(record.model_fields)
    if inside := _sections_with(key_path[-1], record):
        remedy = f"did you mean {' or '.join('.'.join((*key_path[:-1], section, key_path[-1])) for section in inside)}?"
    else:
        remedy = did_you_mean(key_path[-1], fields, f"known keys: {', '.join(fields)}", cutoff=0.5)
    return f"unknown key {'.'.join(key_path)!r}; {remedy}"


def _sections_with(key: str, record: type[Config]) -> list[str]:
    """The sections of a record that have such a setting: `policy` and `reward_model` for a learning rate."""
    return [
        name
        for name, field in record.model_fields.items()
        if get_origin(field.annotation) not in (tuple, list, dict)
        and any(key in section.model_fields for section in records_of(field))
    ]


def _missing_kind_message(value: dict[str, Any], kinds: dict[str, type[Config]], at: tuple[str, ...]) -> str:
    """A message with every kind and, if only one kind has all the given keys, a hint at that one."""
    fitting = [kind for kind, record in kinds.items() if value.keys() <= record.model_fields.keys()]
    hint = f"; these keys are those of kind: {fitting[0]}" if value and len(fitting) == 1 else ""
    choices = " or ".join(f"kind: {kind}" for kind in kinds)
    return f"{'.'.join(at)}: kind is missing; add {choices}{hint}"


def _unfolded(issues: Iterable[Any], at: tuple[int | str, ...] = ()) -> Iterator[Any]:
    """Every issue with its full location. The issue of a part is replaced by the issues inside it."""
    for issue in issues:
        place = (*at, *issue["loc"])
        if issue["type"] == NESTED:
            yield from _unfolded(issue["ctx"]["errors"], place)
        else:
            yield {**issue, "loc": place}


SHAPES = {
    "tuple_type": "write a list: [...]",
    "model_type": "write the settings of this section: {name: value, ...}",
    "dict_type": "write a mapping: {name: value, ...}",
}
"""What to write, by pydantic's type of an issue, where pydantic names one of Python's types."""


def _describe(issue: Any, settings: Settings, places: Places) -> str:
    location = _written(tuple(str(part) for part in issue["loc"]), places)
    message = SHAPES.get(issue["type"]) or issue["msg"].removeprefix("Value error, ")
    if not location:
        return f"{settings.source}: {message}"
    shown_value = "" if issue["type"] == "missing" else f" (found {issue['input']!r})"
    return f"{settings.place(location)}: {'.'.join(location)}: {message}{shown_value}"
