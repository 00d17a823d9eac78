"""What settings mean, for people and editors: explanations, a resolved configuration with comments, the JSON Schema."""

import textwrap
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic.fields import FieldInfo

from cooper_base.config.base import (
    Config,
    Kinds,
    annotation_of,
    is_mapping,
    kinds_in,
    kinds_of,
    record_of_kind,
    records_in,
    records_of,
)
from cooper_base.errors import InputError, did_you_mean

_WORDS = {int: "integer", float: "number", str: "text", bool: "true or false", Path: "path", Any: "anything"}
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below", "min_length": "length at least"}

_NAMED = ".<name>"
"""Placeholder for the name of an element of a mapping."""


@dataclass(frozen=True)
class Setting:
    """One setting, such as `rollout.max_tokens`.

    The key `watch[].metric` is a setting of every element of a list, `parts.<name>.size` one of every named element.
    """

    key: str
    kind: str | None
    """The kind of record it belongs to, if several are possible."""
    values: str
    """The possible values, in words, and the default. Empty for the heading of a kind."""
    text: str
    is_section: bool = False
    """Whether it contains other settings."""


def explain(
    record: type[Config],
    at: str = "",
    kind: str | None = None,
    values_of: Config | None = None,
    around: tuple[type[Config], ...] = (),
) -> list[Setting]:
    """Every setting of a record and of the records inside it, in order.

    `at` is its key, `kind` its kind, `values_of` its value if it is the default of a field, `around` what contains it.
    """
    found: list[Setting] = []
    root = around[0] if around else record
    for name, field in record.model_fields.items():
        if kind is not None and name == "kind":
            continue
        key = f"{at}.{name}" if at else name
        default = getattr(values_of, name) if values_of is not None else field.get_default(call_default_factory=True)
        required = values_of is None and field.is_required()
        records = records_of(field)
        shown = "required" if required else f"default {default_text(default)}"
        if not records or name == "rewards":
            shown += "".join(f", {run} {default_text(value)}" for run, value in root.set_by_kinds(key, kind).items())
        # The settings inside a section show their own defaults. A section of several kinds shows the default kind.
        values = _values(field) if len(records) == 1 and isinstance(default, Config) else f"{_values(field)}; {shown}"
        found.append(Setting(key, kind, values, field.description or "", is_section=bool(records)))
        found += _inside(field, key, kind, None if required else default, (*around, record))
    return found


def narrow(settings: Sequence[Setting], key: str) -> list[Setting]:
    """The setting `key` and those inside it, or every setting of a bare name. Raises InputError if there is none."""
    whole = [setting for setting in settings if _plain(setting.key) == key or _plain(setting.key).startswith(f"{key}.")]
    found = whole or [setting for setting in settings if _plain(setting.key).endswith(f".{key}")]
    if not found:
        names = dict.fromkeys(
            name for setting in settings for name in (_plain(setting.key), _plain(setting.key).split(".")[-1])
        )
        remedy = did_you_mean(key, names, "`cooper config` lists all settings")
        raise InputError(f"{key}: neither a setting nor a configuration file; {remedy}")
    return found


COMMON = (
    *("kind", "name", "steps", "problems_per_step", "policy.model", "policy.learning_rate", "reward_model.model"),
    *("problems.source", "test_problems.source", "rollout.n", "rollout.max_tokens", "evaluation.every"),
    *("checkpoint.every", "rule.kind", "cooptimization.pairs", "rewards", "seed"),
)
"""The settings that most runs set."""


def overview(settings: Sequence[Setting]) -> dict[str, list[Setting]]:
    """The sections, those with common settings first, and the common settings, each under a heading."""
    whole = {setting.key: setting for setting in settings if setting.kind is None}
    common = [whole[key] for key in COMMON if key in whole]
    first = {key.partition(".")[0]: place for place, key in enumerate(COMMON)}
    sections = [
        setting for setting in settings if setting.is_section and setting.kind is None and "." not in setting.key
    ]
    return {
        "sections": sorted(sections, key=lambda setting: first.get(setting.key, len(COMMON))),
        "common settings": common,
    }


def default_text(value: Any) -> str:
    """A value as one line of YAML. For a record, its kind."""
    if isinstance(value, Config):
        return str(getattr(value, "kind", f"{type(value).__module__}:{type(value).__qualname__}"))
    plain = str(value) if isinstance(value, Path) else value
    if isinstance(value, tuple):
        plain = [{"kind": default_text(part)} if isinstance(part, Config) else part for part in value]
    quotes = '"' if isinstance(plain, str) and "\n" in plain else None  # keeps its line ends as \n
    written = yaml.safe_dump(plain, default_flow_style=True, default_style=quotes, width=10**6, allow_unicode=True)
    return written.removesuffix("...\n").strip()


def _inside(
    field: FieldInfo, key: str, kind: str | None, default: Any, around: tuple[type[Config], ...]
) -> Iterator[Setting]:
    """The settings of the records that a field may hold. A part inside a part of the same kinds, such as a reward in a
    sum of rewards, has the settings that are listed already."""
    records = records_of(field)
    if any(record in around for record in records):
        return
    key += "[]" if get_origin(field.annotation) in (tuple, list) else _NAMED if is_mapping(field) else ""
    for record in records:
        values_of = default if type(default) is record else None
        if len(records) == 1 and kinds_of(field) is None:
            yield from explain(record, key, kind, values_of, around)
            continue
        name = record.model_fields["kind"].default
        yield Setting(key, name, "", record.__doc__ or "", is_section=True)
        yield from explain(record, key, name, values_of, around)


def _plain(key: str) -> str:
    return key.replace("[]", "").replace(_NAMED, "")


def _values(field: FieldInfo) -> str:
    found = (
        (words, getattr(constraint, name, None)) for constraint in field.metadata for name, words in _BOUNDS.items()
    )
    bounds = [f"{words} {bound:g}" for words, bound in found if bound is not None]
    patterns = [
        f"of the form {pattern}" for constraint in field.metadata if (pattern := getattr(constraint, "pattern", None))
    ]
    return ", ".join([_type(annotation_of(field)), *bounds, *patterns])


def _type(annotation: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation in _WORDS:
        return _WORDS[annotation]
    if annotation is type(None):
        return "null"
    if origin is Literal:
        return " | ".join(map(str, parts))
    if origin is Annotated and not any(isinstance(part, Kinds) for part in parts):
        return _type(parts[0])
    if origin in (tuple, list):
        first, *others = parts
        endless = others in ([], [...])
        return f"list of {_type(first)}" if endless else f"[{', '.join(map(_type, parts))}]"
    if origin is dict:
        return f"mapping of names to {_type(parts[1])}" if records_in(parts[1]) else "mapping"
    nullable = " or null" if type(None) in parts else ""
    if kinds := _kinds(annotation):
        return f"section of kind {' | '.join(kinds)}{nullable}"
    if origin in (Union, types.UnionType):
        return " or ".join(_type(part) for part in parts)
    return "section" if records_in(annotation) else "mapping" if not parts else _type(parts[0])


def _kinds(annotation: Any) -> list[str]:
    """The possible values of `kind`; empty if there is no choice."""
    records = records_in(annotation)
    if (kinds := kinds_in(annotation)) is not None:
        return [*(record.model_fields["kind"].default for record in records), kinds.outside]
    return [record.model_fields["kind"].default for record in records] if len(records) > 1 else []


WIDTH = 100


def commented_yaml(config: Config, comments: bool = True) -> str:
    """YAML that reads back as `config`. Without `comments` it has only keys and values."""
    return "".join(f"{line}\n" for line in _lines(config, 0, comments))


def _lines(config: Config, depth: int, comments: bool) -> Iterator[str]:
    indent = "  " * depth
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if comments and len(get_args(field.annotation)) != 1:  # a `kind` with only one possible name needs no comment
            text = " ".join((field.description or "").split())
            yield from (f"{indent}# {line}" for line in textwrap.wrap(text, WIDTH - len(indent)))
        if isinstance(value, Config):
            yield f"{indent}{name}:"
            yield from _part(value, field, depth + 1, comments)
        elif isinstance(value, tuple) and value and all(isinstance(part, Config) for part in value):
            yield f"{indent}{name}:"
            for part in value:
                first, *rest = _part(part, field, depth + 2, comments=False)
                yield from (f"{indent}  - {first.lstrip()}", *rest)
        elif isinstance(value, dict) and value and all(isinstance(part, Config) for part in value.values()):
            yield f"{indent}{name}:"
            for key, part in value.items():
                yield f"{indent}  {default_text(key)}:"
                yield from _part(part, field, depth + 2, comments)
        else:
            default = field.get_default(call_default_factory=True)
            changed = comments and not field.is_required() and default != value and not isinstance(default, Config)
            note = f"  # default {default_text(default)}" if changed else ""
            yield f"{indent}{name}: {default_text(value)}{note}"


def recipe_yaml(record: type[Config], recipe: dict[str, Any], depth: int = 0) -> Iterator[str]:
    """The lines of a recipe as YAML, each setting with the default that it replaces."""
    for name, value in recipe.items():
        field, start = record.model_fields.get(name), f"{'  ' * depth}{name}:"
        if field is None:  # a section that this record does not have
            continue
        if isinstance(value, dict):
            yield start
            inner = record_of_kind(field, value.get("kind")) or records_of(field)[0]
            yield from recipe_yaml(inner, value, depth + 1)
        else:
            default = field.get_default(call_default_factory=True)
            note = f"  # default {default_text(default)}" if name != "kind" else ""
            yield f"{start} {default_text(value)}{note}"


def _part(value: Config, field: FieldInfo, depth: int, comments: bool) -> Iterator[str]:
    """The lines of a record inside another. A part begins with its `kind`, which is needed to read it back."""
    key, kinds = f"{'  ' * depth}kind:", kinds_of(field)
    if kinds is not None:
        yield f"{key} {default_text(kinds.kind_of(value))}"
    yield from (line for line in _lines(value, depth, comments) if kinds is None or not line.startswith(key))


def json_schema(record: type[Config], title: str) -> dict[str, Any]:
    """The schema of a file with these settings: names, types, bounds, defaults, kinds, and the text under each field.

    Parts from outside the package, and rules about several settings at once, are checked when the file is read.
    """
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": title, **_readable(record.model_json_schema())}


def _readable(schema: Any) -> Any:
    """The schema without pydantic's titles, which repeat the names, and with each paragraph of text on one line."""
    if isinstance(schema, list):
        return [_readable(option) for option in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _readable(value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}
    if isinstance(text := kept.get("description"), str):
        kept["description"] = "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    return kept
