"""A cache for functions of texts that is bounded in bytes: what comes from outside may be long."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

_SHORT, _LONG = 1000, 32_000
"""Characters of a text."""
_LONG_ENTRIES = 64
"""Enough for the reference answers of a batch, which are read again for every completion."""

More = ParamSpec("More")
Value = TypeVar("Value")
OfText = Callable[Concatenate[str, More], Value]


def text_cache(entries: int) -> Callable[[OfText[More, Value]], OfText[More, Value]]:
    """`lru_cache` with `entries` results for short texts and a few for long ones. A text of more than 32,000
    characters is read every time."""

    def decorate(function: OfText[More, Value]) -> OfText[More, Value]:
        short, long = lru_cache(entries)(function), lru_cache(_LONG_ENTRIES)(function)

        @wraps(function)
        def cached(text: str, /, *more: More.args, **named: More.kwargs) -> Value:
            size = len(text)
            return (short if size <= _SHORT else long if size <= _LONG else function)(text, *more, **named)

        return cached

    return decorate
