"""A resolved configuration as YAML, with the meaning of each setting and the defaults of changed ones as comments."""

import textwrap
from collections.abc import Iterator
from typing import get_args

from pydantic.fields import FieldInfo

from cooper_rl.config.base import Config
from cooper_rl.config.explanation import default_text
from cooper_rl.config.nested import kinds_of

WIDTH = 100


def commented_yaml(config: Config, comments: bool = True) -> str:
    """YAML that reads back as `config`. Without `comments` it has only keys and values."""
    return "".join(f"{line}\n" for line in _lines(config, 0, comments))


def _lines(config: Config, depth: int, comments: bool) -> Iterator[str]:
    indent = "  " * depth
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if comments and len(get_args(field.annotation)) != 1:  # a `kind` with only one possible name needs no comment
            yield from _comment(field.description or "", indent)
        if isinstance(value, Config):
            yield f"{indent}{name}:"
            yield from _part(value, field, depth + 1, comments)
        elif isinstance(value, tuple) and value and all(isinstance(one, Config) for one in value):
            yield f"{indent}{name}:"
            for one in value:
                first, *rest = _part(one, field, depth + 2, comments=False)
                yield from (f"{indent}  - {first.lstrip()}", *rest)
        elif isinstance(value, dict) and value and all(isinstance(one, Config) for one in value.values()):
            yield f"{indent}{name}:"
            for key, one in value.items():
                yield f"{indent}  {default_text(key)}:"
                yield from _part(one, field, depth + 2, comments)
        else:
            default = field.get_default(call_default_factory=True)
            changed = comments and not field.is_required() and default != value and not isinstance(default, Config)
            note = f"  # default {default_text(default)}" if changed else ""
            yield f"{indent}{name}: {default_text(value)}{note}"


def _part(value: Config, field: FieldInfo, depth: int, comments: bool) -> Iterator[str]:
    """The lines of a record inside another. A part begins with its `kind`, which is needed to read it back."""
    kinds = kinds_of(field)
    if kinds is None:
        yield from _lines(value, depth, comments)
        return
    yield f"{'  ' * depth}kind: {default_text(kinds.kind_of(value))}"
    yield from (line for line in _lines(value, depth, comments) if not line.startswith(f"{'  ' * depth}kind:"))


def _comment(text: str, indent: str) -> list[str]:
    return [f"{indent}# {line}" for line in textwrap.wrap(" ".join(text.split()), WIDTH - len(indent))]
