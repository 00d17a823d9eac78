"""Forms of a completion: as every reward model reads it, safe to print, and set apart from instructions around it."""

import re
import unicodedata

from cooper_base.data.thoughts import without_thoughts

_END_MARKER = re.compile(r"(?:<\|[a-zA-Z_]+\|>|</s>|<eos>|<end_of_turn>)\Z")
_LONGEST_MARKER = 64
_BLANK_LINES = re.compile(r"\n{3,}")
_BRACKETS = re.compile(r"<{3,}|>{3,}")


def normalise(text: str) -> str:
    """The form in which a reward model reads every completion, whoever wrote it. It reveals no label.

    Only what follows the last thought stays; of an unfinished thought nothing does. Line ends become newlines, and
    several blank lines one. Whitespace at the end of lines and at both ends goes, and so do end-of-turn markers that a
    server left in. Applying it twice changes nothing.
    """
    lines = without_thoughts(text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    text = "\n".join(line.rstrip() for line in lines).strip()
    end = len(text)  # a broken model may repeat its end marker thousands of times, so each search is short
    while marker := _END_MARKER.search(text, max(0, end - _LONGEST_MARKER), end):
        end = marker.start()
        while end and text[end - 1].isspace():
            end -= 1
    return _BLANK_LINES.sub("\n\n", text[:end])


def fenced(text: str, most_chars: int | None = None) -> str:
    """The normalised text in a fence that it cannot close. Of more than `most_chars` characters it loses the middle."""
    text = normalise(text)
    if most_chars is not None and len(text) > most_chars:
        half = most_chars // 2
        text = f"{text[:half]}\n[...]\n{text[-half:]}"
    longest = max((len(run) for run in _BRACKETS.findall(text)), default=2)
    return f"{'<' * (longest + 1)}\n{text}\n{'>' * (longest + 1)}"


def without_end(run: re.Pattern[str], text: str) -> str:
    """The text without a run of what the pattern repeats, if one ends the text.

    The pattern matches whole runs, wherever they are. One that had to reach the end would begin at every position.
    """
    return run.sub(lambda run_match: "" if run_match.end() == len(text) else run_match.group(), text)


def whole_characters(text: str) -> str:
    """The text with a question mark for each half of a character, as in a cut `\\ud83d`: no tokenizer, server or file
    takes half of one."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def printable(text: str) -> str:
    """The text with characters escaped that could move the cursor, change colours or the order of what is read, or
    that no terminal can be sent. New lines, spaces of every width and joiners of letters stay."""
    return text if text.isprintable() else _UNPRINTABLE.sub(_escaped, text)


_UNPRINTABLE = re.compile(r"[^ -~\n\u200c\u200d]")


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode()


def one_line(text: str, most: int = 300) -> str:
    """The beginning of a text from a file or a library, on one line and safe to print, as a part of a message."""
    first = text.strip()[: most + 1].replace("\n", " ")
    return printable(first if len(first) <= most else f"{first[:most]}…")


def has_content(text: str) -> bool:
    """Whether the text has any letter or digit. Without one, it cannot hold an answer."""
    return any(character.isalnum() for character in text)


def boxed(answer: str) -> str:
    r"""The answer in a box, as a policy is asked to state it. `$\frac12$` loses its dollars: a box needs none."""
    inner = answer[1:-1] if answer.count("$") == 2 and answer[0] == answer[-1] == "$" else answer
    return f"\\boxed{{{inner}}}"
