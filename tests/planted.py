"""A pattern that takes exponential time, as one that the test of all patterns might have missed."""

PLANTED = """
import re
from cooper_rl.rules import extraction

planted = extraction._STATEMENT.pattern + r"|zz(?:(?:q|qq)+)+x"
extraction._STATEMENT = re.compile(planted, extraction._STATEMENT.flags)
"""
"""What Python imports as it starts, from a folder on its path (`sitecustomize.py`): every process has the pattern."""

STALLS = "The answer is zz" + "q" * 60 + " 12"
"""A completion on which it would take years."""
