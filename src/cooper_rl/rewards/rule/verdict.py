"""The four verdicts on a completion."""

from typing import Literal

Verdict = Literal["correct", "wrong", "unparsed", "timeout"]
"""`correct`: the final answer equals the reference. `wrong`: it does not, or the completion gives several answers.
`unparsed`: no readable answer was found. `timeout`: checking needed too much CPU time or memory."""

UserVerdict = Literal["correct", "wrong", "unparsed"]
"""The verdicts that a user-written rule may return."""
