"""Reads JSON strictly by its standard, for files from untrusted sources."""

import json
import math
import re
from typing import Any

from cooper_base.data.text import whole_characters

MOST_VALUES = 1 << 22
"""Values in one JSON text, counted by its commas, colons and brackets: a short list in it takes 20 times its bytes."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} appears twice in one object")
    return fields


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not valid JSON; write null if there is no value")


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text} is too large")
    return number


STRICT = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_number)
OF_ROWS = json.JSONDecoder(object_pairs_hook=_object, parse_constant=lambda _: None, parse_float=_number)
"""For rows of data, which other programs write: NaN and Infinity, as Python writes them, are null."""


def parse_json(text: str, decoder: json.JSONDecoder = STRICT) -> Any:
    """The value of a JSON text. Raises ValueError as `decode_json` and `check_values` do, and for more text."""
    check_values(text)
    value, end = decode_json(text, len(text) - len(text.lstrip(" \t\r\n")), decoder)
    if text[end:].strip(" \t\r\n"):
        raise ValueError(f"more text after the value: {text[end : end + 20]!r}")
    return value


def check_values(text: str | bytes) -> None:
    """Raises ValueError for a JSON text with more than `MOST_VALUES` values, which would take too much memory."""
    if len(text) > MOST_VALUES:
        marks = ",:[{" if isinstance(text, str) else (b",", b":", b"[", b"{")
        if sum(text.count(mark) for mark in marks) > MOST_VALUES:  # pyright: ignore[reportArgumentType]
            raise ValueError(f"more than {MOST_VALUES} values in one")


def decode_json(text: str, start: int, decoder: json.JSONDecoder = STRICT) -> tuple[Any, int]:
    """The JSON value that starts at `start`, and the position of its end.

    Raises ValueError, which says why, for text that is not JSON and for nesting too deep for Python's reader. It also
    rejects what that reader accepts: numbers beyond float64, repeated keys, and NaN and Infinity but with `OF_ROWS` as
    the decoder. Half a surrogate pair is a question mark (`whole_characters`).
    """
    try:
        value, end = decoder.raw_decode(text, start)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if _SURROGATE.search(text, start, end):
        value = json.loads(whole_characters(json.dumps(value, ensure_ascii=False)))
    return value, end
