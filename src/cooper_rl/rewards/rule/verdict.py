"""The four things a rule can say about a completion."""

from typing import Literal

Verdict = Literal["correct", "wrong", "unparsed", "timeout"]
"""`correct`: the final answer equals the reference. `wrong`: it does not, or several were given.
`unparsed`: no answer was found, or none that can be read. `timeout`: checking it took too long or too much memory."""

UserVerdict = Literal["correct", "wrong", "unparsed"]
"""What a rule of the user's own says."""
