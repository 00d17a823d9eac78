"""Sets a text that somebody else wrote apart from the instructions around it."""

import re

from cooper_rl.data.text import normalise

_BRACKETS = re.compile(r"<{3,}|>{3,}")


def fenced(text: str, most_chars: int | None = None) -> str:
    """The normalised text between lines of angle brackets, which are longer than any such run inside the text.

    The text can therefore not close its own fence. A text of more than `most_chars` characters loses its middle, never
    its end.
    """
    text = normalise(text)
    if most_chars is not None and len(text) > most_chars:
        half = most_chars // 2
        text = f"{text[:half]}\n[...]\n{text[-half:]}"
    longest = max((len(run) for run in _BRACKETS.findall(text)), default=2)
    return f"{'<' * (longest + 1)}\n{text}\n{'>' * (longest + 1)}"
