"""From a YAML file and `key=value` overrides to a checked `RunConfig`, with errors a user can act on."""

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from cooper_rl.errors import InputError
from cooper_rl.runs.config import RunConfig
from cooper_rl.runs.presets import PRESETS


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a run's configuration.

    Precedence: `overrides` ("policy.learning_rate=1e-5") over the file over the preset over the defaults.
    Raises InputError naming file, line and key for anything that does not fit, with the nearest known key.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such configuration file")
    text = path.read_text(encoding="utf-8")
    try:
        settings = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(settings, dict):
        raise InputError(f"{path}: expected a mapping of settings, found {type(settings).__name__}")
    for override in overrides:
        _apply_override(settings, override)
    return build_config(settings, source=str(path), lines=_key_lines(text))


def build_config(
    settings: dict[str, Any], source: str = "config", lines: dict[tuple[str, ...], int] | None = None
) -> RunConfig:
    """Check plain settings against the schema; `source` and `lines` place the errors."""
    lines = lines or {}
    for key_path in _unknown_keys(settings, RunConfig):
        raise InputError(_unknown_key_message(key_path, source, lines))
    preset = settings.get("preset", RunConfig.model_fields["preset"].default)
    merged = merge(PRESETS.get(preset, {}), settings)
    try:
        return RunConfig.model_validate(merged)
    except ValidationError as error:
        problems = [_describe(issue, source, lines) for issue in error.errors()]
        raise InputError("\n".join(problems)) from error


def merge(defaults: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """`settings` over `defaults`, key by key; a mapping of another `kind` replaces rather than mixes."""
    merged = dict(defaults)
    for key, value in settings.items():
        default = merged.get(key)
        same_kind = isinstance(value, dict) and value.get("kind") in (None, (default or {}).get("kind"))
        merged[key] = merge(default, value) if isinstance(default, dict) and same_kind else value
    return merged


def _apply_override(settings: dict[str, Any], override: str) -> None:
    key, separator, raw = override.partition("=")
    if not separator or not key:
        raise InputError(f"override {override!r}: expected key=value, such as policy.learning_rate=1e-5")
    *parents, leaf = key.split(".")
    target = settings
    for parent in parents:
        target = target.setdefault(parent, {})
        if not isinstance(target, dict):
            raise InputError(f"override {override!r}: {parent} is not a group of settings")
    try:
        value = yaml.safe_load(raw)
    except yaml.YAMLError as error:
        raise InputError(f"override {override!r}: value is not valid YAML") from error
    target[leaf] = value


def _records(annotation: Any) -> list[type[BaseModel]]:
    """The configuration records an annotation allows, through unions, Optional and Annotated."""
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [record for argument in get_args(annotation) for record in _records(argument)]


def _unknown_keys(
    settings: dict[str, Any], record: type[BaseModel], at: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    for key, value in settings.items():
        field = record.model_fields.get(key)
        if field is None:
            yield (*at, str(key)), list(record.model_fields)
        elif isinstance(value, dict):
            candidates = _records(field.annotation)
            chosen = [
                c
                for c in candidates
                if "kind" in c.model_fields and c.model_fields["kind"].default == value.get("kind")
            ]
            for candidate in (chosen or candidates)[:1] if len(candidates) == 1 or chosen else []:
                yield from _unknown_keys(value, candidate, (*at, key))


def _unknown_key_message(
    found: tuple[tuple[str, ...], list[str]], source: str, lines: dict[tuple[str, ...], int]
) -> str:
    key_path, known = found
    nearest = difflib.get_close_matches(key_path[-1], known, n=1, cutoff=0.5)
    remedy = f"did you mean {nearest[0]!r}?" if nearest else f"known keys: {', '.join(known)}"
    return f"{_place(key_path, source, lines)}: unknown key {'.'.join(key_path)!r}; {remedy}"


def _describe(issue: Any, source: str, lines: dict[tuple[str, ...], int]) -> str:
    location = tuple(str(part) for part in issue["loc"])
    message = issue["msg"].removeprefix("Value error, ")
    if not location:
        return f"{source}: {message}"
    found = "" if issue["type"] == "missing" else f" (found {issue['input']!r})"
    return f"{_place(location, source, lines)}: {'.'.join(location)}: {message}{found}"


def _place(key_path: tuple[str, ...], source: str, lines: dict[tuple[str, ...], int]) -> str:
    for length in range(len(key_path), 0, -1):
        if key_path[:length] in lines:
            return f"{source}:{lines[key_path[:length]]}"
    return source


def _key_lines(text: str) -> dict[tuple[str, ...], int]:
    """The line (from 1) of every key in a YAML text."""
    lines: dict[tuple[str, ...], int] = {}

    def walk(node: yaml.Node, at: tuple[str, ...]) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                lines[(*at, key.value)] = key.start_mark.line + 1
                walk(value, (*at, key.value))

    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is not None:
        walk(root, ())
    return lines
