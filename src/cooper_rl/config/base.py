"""The base of every configuration record. Unknown keys are errors, and fields carry their own documentation."""

from collections.abc import Mapping
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, model_validator

Places = dict[tuple[str, ...], tuple[str, ...]]
"""The path of a setting, and the path at which the user wrote it."""


class Config(BaseModel):
    """Immutable settings of one component. The docstring under a field is its documentation."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    renamed: ClassVar[Mapping[str, str]] = {}
    """Settings of earlier versions, and what to write now."""

    @classmethod
    def expand(cls, settings: dict[str, Any]) -> tuple[dict[str, Any], Places]:
        """The settings without presets and short forms, and where those that have moved were written.

        A record that has either overrides this. Settings that are expanded already stay as they are.
        """
        return settings, {}

    @model_validator(mode="before")
    @classmethod
    def _prepare(cls, values: Any) -> Any:
        """Expand, and turn true into text where a number is expected: pydantic would read it as 1, but rejects text."""
        if not isinstance(values, dict):
            return values
        if moved := cls.renamed.keys() & values.keys():
            raise ValueError(f"{min(moved)} has moved; write {cls.renamed[min(moved)]}")
        values, _ = cls.expand(values)
        numbers = {name for name, field in cls.model_fields.items() if _takes_numbers_only(field.annotation)}
        return {name: _as_words(value) if name in numbers else value for name, value in values.items()}


def mapping_of(part: Any) -> dict[str, Any]:
    """The settings of a part, be it written as a mapping or made in Python; none of anything else."""
    return part if isinstance(part, dict) else vars(part) if isinstance(part, Config) else {}


def _takes_numbers_only(annotation: Any) -> bool:
    allowed = _types(annotation)
    return bool(allowed & {int, float}) and not allowed & {bool, Any}


def _types(annotation: Any) -> set[Any]:
    """The types that an annotation names, also inside unions, containers and Annotated."""
    if isinstance(annotation, type) or annotation is Any:
        return {annotation, *(one for part in get_args(annotation) for one in _types(part))}
    return {one for part in get_args(annotation) for one in _types(part)}


def _as_words(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_words(one) for one in value]
    return str(value).lower() if isinstance(value, bool) else value
