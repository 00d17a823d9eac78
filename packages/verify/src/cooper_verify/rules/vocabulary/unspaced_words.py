"""Which words are read in scripts that have no spaces between words: Chinese, Japanese, Korean."""

import re

from cooper_verify.rules.vocabulary.languages import LANGUAGES

CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_UNSPACED = [language for language in LANGUAGES if not language.spaced]


def _unspaced(*columns: str) -> re.Pattern[str]:
    # Japanese before Chinese, whose words are shorter.
    rows = reversed(_UNSPACED)
    parts = [getattr(row, column) for row in rows for column in columns if getattr(row, column)]
    words = [word for language in _UNSPACED for word in language.frames.split()]
    return re.compile("|".join([*parts, *sorted(words, key=len, reverse=True)]))


_UNSPACED_FRAMES = _unspaced("ending", "answer", "verb", "states", "final", "conclusion", "option")
_UNSPACED_VALUES = re.compile(
    "|".join(
        filter(None, (getattr(row, name) for row in _UNSPACED for name in ("no", "bound", "bound_after", "unsure")))
    )
)
_UNSPACED_SUBJECTS = re.compile(
    "|".join(
        sorted((word for language in _UNSPACED for word in language.subjects.split()), key=len, reverse=True)
        or [r"(?!)"]
    )
)
_HEAVENLY_STEMS = "\u7532\u4e59\u4e19\u4e01"
"""Names of persons and things in Chinese problems."""


def unread_of_run(run: str, beside: bool) -> list[str]:
    """The words of a run that are no frames; between a verb and a value (`beside`) subjects count as words too."""
    parts = _UNSPACED_FRAMES.sub(" ", run).split()
    if beside:
        return parts
    words = _UNSPACED_FRAMES.sub(" ", _UNSPACED_SUBJECTS.sub(" ", run)).split()
    # A part with pieces of one sign is known as a whole: the question has it.
    return parts if any(len(word) < 2 for word in words) else words


def may_be_known(word: str) -> bool:
    """Whether a word of such a script is harmless because a question has it: not a word about values."""
    return (len(word) > 1 or word in _HEAVENLY_STEMS) and not _UNSPACED_VALUES.search(word)
