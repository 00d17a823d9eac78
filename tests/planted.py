"""Faults of the code that reads texts, as the tests of it might have missed: a pattern that takes exponential time, and
an exception on one text."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cooper_verify.faults import STRICT
from cooper_verify.rules.processes import guard


def planted(pattern: str) -> str:
    """What Python imports as it starts, from a folder on its path (`sitecustomize.py`): every process, also the main
    one, looks for this pattern wherever a completion states its answer."""
    return f"""
import re
from cooper_verify.rules.text import marks

whole = marks._STATEMENT.pattern + {"|" + pattern!r}
marks._STATEMENT = re.compile(whole, marks._STATEMENT.flags)
"""


EXPONENTIAL = "zz(?:(?:q|qq)+)+x"
STALLS = "The answer is zz" + "q" * 60 + " 12"
"""A completion on which `EXPONENTIAL` would take years."""
EXPONENTIAL_ON_SEVENS = r"(?=[^\n]*answer: \d*7)(?:(?:(?:.|..)+)+)+(?!)"
"""The same on answers of the embedded world that end in 7."""


RAISES = r"\boxed{zz 12}"
"""A completion on which a process with `RAISING` raises. `zz 12` is a reference that does not verify."""
RAISING = """
from cooper_verify.rules.text import reply

read = reply.reply_of


def raising(text):
    if "zz 12" in text:
        raise ZeroDivisionError("planted")
    return read(text)


reply.reply_of = raising
"""


@contextmanager
def reading_raises(folder: Path, monkeypatch: pytest.MonkeyPatch, raising: str = RAISING) -> Iterator[None]:
    """The process that reads texts raises on `RAISES`, and nothing is strict, as at a user's."""
    (folder / "sitecustomize.py").write_text(raising)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.delenv(STRICT)
    guard._guard.close()
    try:
        yield
    finally:
        guard._guard.close()
