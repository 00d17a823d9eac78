"""JSON strictly by its standard, for files from anywhere."""

import json
import math
import re
from typing import Any

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str) -> Any:
    """The value of a JSON text. Raises ValueError as `decode_json`."""
    value, end = decode_json(text, len(text) - len(text.lstrip(" \t\r\n")))
    if text[end:].strip(" \t\r\n"):
        raise ValueError(f"more text behind the value: {text[end : end + 20]!r}")
    return value


def decode_json(text: str, start: int) -> tuple[Any, int]:
    """The JSON value that starts at `start`, and where it ends.

    Raises ValueError, saying why, for what Python's own reader lets through (NaN, Infinity, numbers beyond float64, a
    key that stands twice, half a surrogate pair), and for nesting too deep for it.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if _SURROGATE.search(text, start, end):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError("half a character: one \\u escape of a pair without the other") from error
    return value, end


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return fields


def _constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON; write null where there is no value")


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text} is too large")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_number)
