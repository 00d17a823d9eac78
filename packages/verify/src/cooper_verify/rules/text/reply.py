"""What of a completion is read for an answer: the model's own turn, without its thoughts and its calls of tools.

A base model goes on after a finished answer with another question, and a chat model whose end mark was not cut off with
another turn. A call of a tool states nothing: its arguments are no answer.
"""

import re

from cooper_base.data.thoughts import own_turn
from cooper_verify.rules.text.marks import first_mark
from cooper_verify.rules.text.text_cache import text_cache
from cooper_verify.rules.vocabulary.languages import LANGUAGES

TAIL_CHARS = 8000
"""Only this many characters at the end of a completion are read, which bounds the work on very long texts."""

_SHORT_CHARS = 60
_QUESTIONS = "|".join(language.question for language in LANGUAGES)
_ANOTHER_QUESTION = re.compile(
    r"^[ \t*]{0,4}(?:#{1,4}[ ]?(?:Instruction|Question|Problem|Human|User|Input)\b"
    rf"|(?:{_QUESTIONS})\s?(?:\*\*)?[:\uff1a])",
    re.MULTILINE,
)
_TURNS = re.compile(r"^[ \t*]{0,4}(?:#{1,4}[ ]?)?(?:Human|User)(?:\*\*)?:", re.MULTILINE)
_CALL = re.compile(
    r"<(?P<tag>tool_call|tool_code|tool_use|function_calls?|invoke|execute)\b[^<>]{0,80}>.*?(?:</(?P=tag)>|\Z)"
    r"|<function=.*?(?:</function>|\Z)|<\|?tool_?calls?(?:_begin)?\|>.*?(?:<\|?/?tool_?calls?(?:_end)?\|>|\Z)"
    r"|\[TOOL_CALLS\].*|<\|python_tag\|>.*",
    re.DOTALL,
)
_CALL_BEGINS = ("<tool", "<function", "<invoke", "<execute", "<|tool", "[TOOL_CALLS]", "<|python_tag|>")
_SOLUTION_MARKS = re.compile(r"<\|(?:begin|end)_of_solution\|>")
_FENCE = re.compile(r"^[ \t]{0,8}```[ ]?([\w+#]{0,20})[^`\n]*$", re.MULTILINE)
_CODE = "python python3 py javascript js typescript ts java c cpp c++ rust go bash sh shell sql ruby r matlab"
_LANGUAGES_OF_CODE = {*_CODE.split(), "tool_code", "tool_call"}


@text_cache(256)
def reply_of(completion: str) -> str:
    """The part of a completion that may give its answer, at most `TAIL_CHARS` characters.

    `reply_of` of the result is the result.
    """
    reply = without_run_on(own_turn(completion))
    if any(begin in reply for begin in _CALL_BEGINS):
        reply = _CALL.sub("\n", reply)
    if "_of_solution|>" in reply:
        reply = _SOLUTION_MARKS.sub("\n", reply)
    if "```" in reply:
        reply = _without_code(reply)
    return reply[-TAIL_CHARS:]


def code_of(completion: str) -> str:
    """The finished blocks of program code in a completion, which `reply_of` leaves out."""
    return "\n".join(_split_code(own_turn(completion))[1]) if "```" in completion else ""


def _without_code(text: str) -> str:
    """The text without its finished blocks of program code, whose comments and outputs are no statements."""
    return "".join(_split_code(text)[0])


def _split_code(text: str) -> tuple[list[str], list[str]]:
    """The parts of a text that are no finished blocks of program code, and those that are."""
    kept: list[str] = []
    code: list[str] = []
    end, opened, is_open = 0, -1, False
    for fence in _FENCE.finditer(text):
        if not is_open:
            is_open, opened = True, fence.start() if fence.group(1).lower() in _LANGUAGES_OF_CODE else -1
        elif not fence.group(1):
            if opened >= 0:
                kept.append(text[end:opened])
                code.append(text[opened : fence.end()])
                end = fence.end()
            is_open = False
    return [*kept, text[end:]], code


def without_run_on(text: str) -> str:
    """A text up to the first new question after a marked answer, or up to a user's turn after anything."""
    turns = _TURNS.finditer(text) if "Human" in text or "User" in text else ()
    turn = next((turn.start() for turn in turns if text[: turn.start()].strip()), None)
    if turn is not None:
        text = text[:turn]
    if (another := _ANOTHER_QUESTION.search(text)) is None:
        return text
    answered = first_mark(text)
    before = text[: another.start()].strip()
    if before and len(before) <= _SHORT_CHARS and "\n" not in before and before[-1].isdecimal():
        return before  # a completion that begins with nothing but its answer
    if answered is None:
        return text
    if another.start() < answered:
        another = _ANOTHER_QUESTION.search(text, answered)
    return text[: another.start()] if another else text
