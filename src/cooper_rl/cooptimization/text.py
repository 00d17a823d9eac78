"""One text form for positives and negatives, so that no formatting habit of a source gives its label away."""

import re

_END_MARKER = re.compile(r"(?:<\|[a-zA-Z_]+\|>|</s>|<eos>|<end_of_turn>)\Z")
_BLANK_LINES = re.compile(r"\n{3,}")

_REASONING = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)
_OPENER = re.compile(
    r"\A\s*(?:sure|certainly|of course|okay|ok|here(?:'s| is| are))\b[^\n]{0,200}:[ \t]*\n+", re.IGNORECASE
)
_FENCE = re.compile(r"\A\s*```[^\n`]*\n((?:(?!```).)*?)\n?```\s*\Z", re.DOTALL)


def normalise(text: str) -> str:
    """The form in which every completion of a pair reaches the reward model, whoever wrote it.

    Line ends become newlines; white space at the end of lines, at both ends of the text and beyond one blank line
    goes; so do end-of-turn markers that a server left in. Applying it twice changes nothing.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    text = "\n".join(line.rstrip() for line in lines).strip()
    while marker := _END_MARKER.search(text):
        text = text[: marker.start()].rstrip()
    return _BLANK_LINES.sub("\n\n", text)


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


def has_content(text: str) -> bool:
    """Whether there is any letter or digit: without one, no answer can be there."""
    return any(character.isalnum() for character in text)
