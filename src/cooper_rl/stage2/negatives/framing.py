"""Removes the chat frame from an assistant's reply."""

import re

from cooper_rl.data.text import normalise

_REASONING = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)
_OPENER = re.compile(
    r"\A\s*(?:sure|certainly|of course|okay|ok|here(?:'s| is| are))\b[^\n]{0,200}:[ \t]*\n+", re.IGNORECASE
)
_FENCE = re.compile(r"\A\s*```[^\n`]*\n((?:(?!```).)*?)\n?```\s*\Z", re.DOTALL)


def unframe(reply: str, like: str) -> str:
    """The reply without the chat frames around the solution, except for frames that `like` (the positive) has too.

    The frames are a leading reasoning block, an opening line ("Sure, here is …:") and a code fence around everything
    that is left. A frame that the positive has is the policy's style, so it stays. The result is normalised.
    """
    reply = normalise(reply)
    for frame in (_REASONING, _OPENER, _FENCE):
        if not frame.match(like):
            reply = frame.sub(r"\1" if frame.groups else "", reply)
    return normalise(reply)
