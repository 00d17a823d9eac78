"""The configuration records that a field may hold, read from its annotation."""

from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

from pydantic.fields import FieldInfo

from cooper_rl.config.base import Config
from cooper_rl.config.registry import Kinds


def whole_annotation(field: FieldInfo) -> Any:
    """A field's annotation with the metadata that pydantic has stripped from it."""
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def records_in(annotation: Any) -> list[type[Config]]:
    """Every record that an annotation names, also inside unions, lists, mappings, Annotated and registries of kinds."""
    return list(dict.fromkeys(_records(annotation)))


def kinds_in(annotation: Any) -> Kinds | None:
    """The registry that an annotation names, or None."""
    if isinstance(annotation, Kinds):
        return annotation
    return next((found for part in get_args(annotation) if (found := kinds_in(part)) is not None), None)


def records_of(field: FieldInfo) -> list[type[Config]]:
    """Every record the field may hold."""
    return records_in(whole_annotation(field))


def kinds_of(field: FieldInfo) -> Kinds | None:
    """The registry whose parts the field holds, or None."""
    return kinds_in(whole_annotation(field))


def record_of_kind(field: FieldInfo, kind: Any) -> type[Config] | None:
    """The record that `kind` names, among the field's own kinds or outside this package; None if there is none."""
    found = [
        one for one in records_of(field) if "kind" in one.model_fields and one.model_fields["kind"].default == kind
    ]
    if found:
        return found[0]
    kinds = kinds_of(field)
    return kinds.record(kind) if kinds is not None and isinstance(kind, str) and ":" in kind else None


def default_kind(field: FieldInfo) -> str | None:
    """The kind of settings that do not name one; None if they must."""
    kinds = kinds_of(field)
    return None if kinds is None else kinds.default


def is_mapping(field: FieldInfo) -> bool:
    """Whether the field holds records by name."""
    return get_origin(field.annotation) is dict


def is_list(field: FieldInfo) -> bool:
    """Whether the field holds several values in order."""
    return get_origin(field.annotation) in (tuple, list)


def _records(annotation: Any) -> Iterator[type[Config]]:
    parts = get_args(annotation)
    if isinstance(annotation, Kinds):
        yield from annotation.records.values()
    elif isinstance(annotation, type) and get_origin(annotation) is None:
        if issubclass(annotation, Config):
            yield annotation
    else:  # next to a registry, an annotation names its parts' common base, which is not itself a part
        registries = [part for part in parts if isinstance(part, Kinds)]
        for part in registries or parts:
            yield from _records(part)
