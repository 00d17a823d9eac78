"""An assistant's reply without its chat frame."""

import re

from cooper_rl.data.text import normalise

_REASONING = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)
_OPENER = re.compile(
    r"\A\s*(?:sure|certainly|of course|okay|ok|here(?:'s| is| are))\b[^\n]{0,200}:[ \t]*\n+", re.IGNORECASE
)
_FENCE = re.compile(r"\A\s*```[^\n`]*\n((?:(?!```).)*?)\n?```\s*\Z", re.DOTALL)


def unframe(reply: str, like: str) -> str:
    """An assistant's reply without the chat frame around the solution, where `like` (the positive) has no such frame.

    The frames: a leading reasoning block, an opening line ("Sure, here is …:"), a code fence around everything that
    is left. A frame that the positive has itself is the policy's style, and stays. The result is normalised.
    """
    reply = normalise(reply)
    for frame in (_REASONING, _OPENER, _FENCE):
        if not frame.match(like):
            reply = frame.sub(r"\1" if frame.groups else "", reply)
    return normalise(reply)
