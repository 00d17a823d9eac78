"""The four things a rule verifier can say about a completion."""

from typing import Literal

Verdict = Literal["correct", "wrong", "unparsed", "timeout"]
"""`correct`: the final answer equals the reference. `wrong`: it does not, or several were given.
`unparsed`: no answer was found, or none that can be read. `timeout`: checking it took too long or too much memory."""
