"""Finds an answer in words or letters, in the same places as a number but read more strictly.

A word that merely occurs in a completion is not an answer. Only three places count: a box, a line that states the
answer, and a completion that is nothing but its answer.
"""

import re
from dataclasses import dataclass

from cooper_rl.rewards.rule.extraction import FREE_CHARS, TAIL_CHARS, final_boxes, last_statement

_JSON_STRING = re.compile(r"\s*\"((?:[^\"\\]|\\.)*)\"")
_DISPLAY = re.compile(r"\s*(?:\\\[(.*?)\\\]|\$\$(.*?)\$\$)", re.DOTALL)
_DRESS = " \t\n:*=#"
_RETRACTION = re.compile(
    r"[^\w.\n]*(?:and|but|not)\b|[\W_]*(?:or|wait|hmm+|sorry|actually|rather|instead|correction|i mean|maybe|perhaps"
    r"|possibly|but wait|oops|scratch that|my mistake|let me correct|no(?=\s*[,.!:;\u2014-])"
    r"|alternatively(?!,?\s+(?:we|you|one|us(?:e|ing)|by|note)\b)"  # another way, not another answer
    r"|(?:(?:that|this|it|which)\s+)?(?:is|was|seems|looks)\s+(?:wrong|incorrect|false|a mistake|not (?:right|correct))"
    r"|(?:that|this|it)\s+(?:cannot|can't)\s+be\s+(?:right|correct))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class TextAnswer:
    """A completion's answer as text.

    `boxes` are the contents of the final boxes. `line` is the line that states the answer; it must come after any
    boxes. `whole` is the end of a completion that has neither. `after` is the text after the boxes or, without boxes,
    after the line.
    """

    boxes: tuple[str, ...] = ()
    line: str | None = None
    whole: str | None = None
    after: str = ""


def text_answer(completion: str, letters: bool = False) -> TextAnswer:
    """The answer of a completion; all fields are empty if there is none.

    With `letters`, a line that begins with `A:` counts as an option, not as a statement of the answer.
    """
    tail = completion[-TAIL_CHARS:].strip()
    spans = final_boxes(tail)
    statement = last_statement(tail, after=spans[-1][1] if spans else 0)
    if statement is not None and statement.is_letter and letters:
        statement = None
    line, after = None, ""
    if statement is not None:
        if statement.is_json and (string := _JSON_STRING.match(statement.text)):
            line = string.group(1).replace("\\\\", "\\")
        elif display := _DISPLAY.match(statement.text.lstrip(_DRESS)):
            line = display.group(1) or display.group(2) or ""
        else:
            line, _, after = statement.text.lstrip(_DRESS).partition("\n")
        line = line.strip() or None
    if spans:
        boxes = tuple(text for start, end in spans if (text := tail[start:end].strip()))
        return TextAnswer(boxes, line, after=tail[spans[-1][1] + 1 :])
    if statement is not None:
        return TextAnswer(line=line, after=after)
    return TextAnswer(whole=tail[-FREE_CHARS:] or None)


def is_retracted(after: str) -> bool:
    """Whether the text after an answer retracts it or offers another one: "or Kyoto", "No, wait", "but maybe B"."""
    return bool(_RETRACTION.match(after))
