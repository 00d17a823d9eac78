"""Reads YAML settings with the line of every key, and rejects what YAML readers silently accept or crash on."""

from collections.abc import Mapping
from typing import Any

import yaml

Lines = Mapping[tuple[str, ...], int]
"""The line (from 1) of every key of a YAML text. Positions in lists count as keys."""

MOST_VALUES = 10_000
MOST_CHARACTERS = 1_000_000
"""Of a text, and of all its values once the aliases are replaced by what they stand for."""
DEEPEST = 100
LONGEST_NUMBER = 400
"""Characters of a number: float64 has no larger ones, and PyYAML takes quadratic time for numbers in base 60."""


def parse_yaml(text: str) -> tuple[Any, Lines]:
    """The value of a YAML text, and the lines of its keys.

    Raises ValueError, with reason and line, for text that is not YAML, keys that are repeated or are not plain text,
    half a surrogate pair, a text of more than a million characters, aliases that expand to more or to too many values,
    and endless nesting.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"{len(text)} characters, and settings have at most {MOST_CHARACTERS}; is it another file?")
    lines = _Lines()
    try:
        loader = _loader(text)
        root = loader.get_single_node()
        if root is None:
            return None, lines
        _find_lines(root, (), lines)
        return loader.construct_document(root), lines
    except RecursionError as error:
        raise ValueError("nested too deeply, or an alias within its own anchor") from error
    # PyYAML does not wrap the exceptions of its constructors: `2001-99-99`, `!!bool x`, `!!timestamp x`, `!!float 1:…`.
    except (yaml.YAMLError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
        raise ValueError(f"not valid YAML: {error}") from error


def _loader(text: str) -> Any:
    """PyYAML's loader, or libyaml's, which is five times as fast, and overflows the stack where values are deep."""
    plain, fast = yaml.SafeLoader(text), getattr(yaml, "CSafeLoader", None)
    if fast is None:
        return plain
    depth = 0
    try:
        for event in yaml.parse(text, Loader=fast):  # builds nothing
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                return plain
    except (yaml.YAMLError, ValueError):  # the plain one says what is wrong, always in the same words
        return plain
    return fast(text)


class _Lines(dict[tuple[str, ...], int]):
    """`Lines` that are being found."""

    characters = 0
    """Those of all keys and values so far, each counted as often as aliases repeat it."""


def _find_lines(node: yaml.Node, at: tuple[str, ...], lines: _Lines) -> None:
    if len(lines) > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES} values; do its aliases multiply?")
    if isinstance(node, yaml.ScalarNode):
        _check_text(node, lines)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise ValueError(f"line {line}: a key is a {key.id}; write a name")
            _check_text(key, lines)
            if (*at, key.value) in lines:
                raise ValueError(f"line {line}: the key {key.value!r} appears twice; remove one of them")
            lines[(*at, key.value)] = line
            _find_lines(value, (*at, key.value), lines)
    else:
        for index, value in enumerate(node.value):
            lines[(*at, str(index))] = value.start_mark.line + 1
            _find_lines(value, (*at, str(index)), lines)


def _check_text(node: yaml.ScalarNode, lines: _Lines) -> None:
    lines.characters += len(node.value)
    if lines.characters > MOST_CHARACTERS:
        raise ValueError(f"more than {MOST_CHARACTERS} characters; do its aliases multiply?")
    if node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float") and len(node.value) > LONGEST_NUMBER:
        raise ValueError(f"line {node.start_mark.line + 1}: a number of {len(node.value)} characters")
    try:
        node.value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"line {node.start_mark.line + 1}: half a character: an incomplete \\u escape") from error
