"""Reads YAML settings with the line of every key, and rejects what YAML readers silently accept or crash on."""

from collections.abc import Mapping
from typing import Any

import yaml

Lines = Mapping[tuple[str, ...], int]
"""The line (from 1) of every key of a YAML text. Positions in lists count as keys."""

MOST_VALUES = 10_000


def parse_yaml(text: str) -> tuple[Any, Lines]:
    """The value of a YAML text, and the lines of its keys.

    Raises ValueError, with reason and line, for text that is not YAML, keys that are repeated or are not plain text,
    half a surrogate pair, aliases that expand to too many values, and endless nesting.
    """
    lines: dict[tuple[str, ...], int] = {}
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is not None:
            _find_lines(root, (), lines)
        return yaml.safe_load(text), lines
    except RecursionError as error:
        raise ValueError("nested too deeply, or an alias within its own anchor") from error
    # PyYAML does not wrap the exceptions of its constructors: `2001-99-99`, `!!bool x`, `!!timestamp x`.
    except (yaml.YAMLError, LookupError, AttributeError, TypeError) as error:
        raise ValueError(f"not valid YAML: {error}") from error


def _find_lines(node: yaml.Node, at: tuple[str, ...], lines: dict[tuple[str, ...], int]) -> None:
    if len(lines) > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES} values; do its aliases multiply?")
    if isinstance(node, yaml.ScalarNode):
        _check_text(node)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise ValueError(f"line {line}: a key is a {key.id}; write a name")
            _check_text(key)
            if (*at, key.value) in lines:
                raise ValueError(f"line {line}: the key {key.value!r} appears twice; remove one of them")
            lines[(*at, key.value)] = line
            _find_lines(value, (*at, key.value), lines)
    else:
        for index, value in enumerate(node.value):
            lines[(*at, str(index))] = value.start_mark.line + 1
            _find_lines(value, (*at, str(index)), lines)


def _check_text(node: yaml.ScalarNode) -> None:
    try:
        node.value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"line {node.start_mark.line + 1}: half a character: an incomplete \\u escape") from error
