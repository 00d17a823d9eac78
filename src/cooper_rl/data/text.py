"""One text form for every completion the reward model reads, so that no formatting habit gives its label away."""

import re

_END_MARKER = re.compile(r"(?:<\|[a-zA-Z_]+\|>|</s>|<eos>|<end_of_turn>)\Z")
_LONGEST_MARKER = 64
_BLANK_LINES = re.compile(r"\n{3,}")


def normalise(text: str) -> str:
    """The form in which every completion reaches the reward model, in training and scoring, whoever wrote it.

    Line ends become newlines; white space at the end of lines, at both ends of the text and beyond one blank line
    goes; so do end-of-turn markers that a server left in. Applying it twice changes nothing.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    text = "\n".join(line.rstrip() for line in lines).strip()
    end = len(text)  # a broken model repeats its end marker by the thousand: the text is not searched for each
    while marker := _END_MARKER.search(text, max(0, end - _LONGEST_MARKER), end):
        end = marker.start()
        while end and text[end - 1].isspace():
            end -= 1
    return _BLANK_LINES.sub("\n\n", text[:end])


def has_content(text: str) -> bool:
    """Whether there is any letter or digit: without one, no answer can be there."""
    return any(character.isalnum() for character in text)
