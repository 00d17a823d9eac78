"""The words in which anything that checks an answer says what it is."""

from typing import Literal

Verdict = Literal["correct", "wrong", "unparsed", "timeout", "silent"]
"""`correct`: the final answer equals the reference. `wrong`: it does not, or the completion gives several answers.
`unparsed`: no readable answer was found. `timeout`: checking needed too much CPU time or memory. `silent`: the rule
does not judge this problem, whatever the answer is."""

UserVerdict = Literal["correct", "wrong", "unparsed", "silent"]
"""What a user-written rule may return, and an answer's verdict from outside."""


def is_right(verdict: Verdict) -> bool | None:
    """Whether an answer with this verdict counts as right; None where the rule is silent, so that it does not count."""
    return None if verdict == "silent" else verdict == "correct"
