"""The configuration records that a field may hold, read from its annotation."""

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from cooper_rl.config.base import Config
from cooper_rl.config.registry import Kinds


def records_of(field: FieldInfo) -> list[type[Config]]:
    """Every record the field may hold, through unions, lists, mappings, Annotated, and kinds that are registered."""
    return list(dict.fromkeys([*_records(field.annotation), *_of_kinds(field.metadata)]))


def record_of_kind(field: FieldInfo, kind: Any) -> type[Config] | None:
    """The record that `kind` names, of the field's own kinds or from outside; None where there is none."""
    found = [
        one for one in records_of(field) if "kind" in one.model_fields and one.model_fields["kind"].default == kind
    ]
    if found:
        return found[0]
    registries = [*_registries(field.annotation), *(one for one in field.metadata if isinstance(one, Kinds))]
    return registries[0].record(kind) if registries and isinstance(kind, str) and ":" in kind else None


def default_kind(field: FieldInfo) -> str | None:
    """The kind of settings that name none; None where they have to."""
    registries = [*_registries(field.annotation), *(one for one in field.metadata if isinstance(one, Kinds))]
    return registries[0].default if registries else None


def is_mapping(field: FieldInfo) -> bool:
    """Whether the field holds records by name."""
    return get_origin(field.annotation) is dict


def _records(annotation: Any) -> Iterator[type[Config]]:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        if issubclass(annotation, Config):
            yield annotation
        return
    for part in get_args(annotation):
        yield from _of_kinds([part]) if isinstance(part, Kinds) else _records(part)


def _of_kinds(metadata: list[Any]) -> Iterator[type[Config]]:
    for one in metadata:
        if isinstance(one, Kinds):
            yield from one.records.values()


def _registries(annotation: Any) -> Iterator[Kinds]:
    for part in get_args(annotation):
        if isinstance(part, Kinds):
            yield part
        else:
            yield from _registries(part)
