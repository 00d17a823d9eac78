"""A pattern that takes exponential time, as one that the test of all patterns might have missed."""


def planted(pattern: str) -> str:
    """What Python imports as it starts, from a folder on its path (`sitecustomize.py`): every process, also the main
    one, looks for this pattern wherever a completion states its answer."""
    return f"""
import re
from cooper_verify.rules import marks

whole = marks._STATEMENT.pattern + {"|" + pattern!r}
marks._STATEMENT = re.compile(whole, marks._STATEMENT.flags)
"""


EXPONENTIAL = "zz(?:(?:q|qq)+)+x"
STALLS = "The answer is zz" + "q" * 60 + " 12"
"""A completion on which `EXPONENTIAL` would take years."""
EXPONENTIAL_ON_SEVENS = r"(?=[^\n]*answer: \d*7)(?:(?:(?:.|..)+)+)+(?!)"
"""The same on answers of the embedded world that end in 7."""
