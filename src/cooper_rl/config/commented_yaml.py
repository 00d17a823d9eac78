"""A resolved configuration as YAML that says what each setting means, and what its default was where it differs."""

import textwrap
from collections.abc import Iterator
from typing import Any, get_args

from cooper_rl.config.base import Config
from cooper_rl.config.explanation import default_text

WIDTH = 100


def commented_yaml(config: Config, comments: bool = True) -> str:
    """YAML that reads back as `config`. Without `comments` there is nothing but keys and values."""
    return "".join(f"{line}\n" for line in _lines(config, 0, comments))


def _lines(config: Config, depth: int, comments: bool) -> Iterator[str]:
    indent = "  " * depth
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if comments and len(get_args(field.annotation)) != 1:  # the one name a record's `kind` can have says it all
            yield from _comment(field.description or "", indent)
        if isinstance(value, Config):
            yield f"{indent}{name}:"
            yield from _lines(value, depth + 1, comments)
        elif isinstance(value, dict) and value and all(isinstance(one, Config) for one in value.values()):
            yield f"{indent}{name}:"
            for key, one in value.items():
                yield f"{indent}  {default_text(key)}:"
                yield from _lines(one, depth + 2, comments=False)
        elif isinstance(value, tuple) and value and all(isinstance(one, Config) for one in value):
            yield f"{indent}{name}:"
            for one, settings in zip(value, config.model_dump(mode="json")[name], strict=True):
                first, *rest = _element(one, settings, depth + 2)
                yield from (f"{indent}  - {first.lstrip()}", *rest)
        else:
            default = field.get_default(call_default_factory=True)
            changed = comments and not field.is_required() and default != value and not isinstance(default, Config)
            note = f"  # default {default_text(default)}" if changed else ""
            yield f"{indent}{name}: {default_text(value)}{note}"


def _element(config: Config, settings: dict[str, Any], depth: int) -> Iterator[str]:
    """A record in a list: its kind first, which a record from outside the package does not know itself."""
    indent = "  " * depth
    if "kind" in settings:
        yield f"{indent}kind: {default_text(settings['kind'])}"
    yield from (line for line in _lines(config, depth, comments=False) if not line.startswith(f"{indent}kind:"))


def _comment(text: str, indent: str) -> list[str]:
    return [f"{indent}# {line}" for line in textwrap.wrap(" ".join(text.split()), WIDTH - len(indent))]
