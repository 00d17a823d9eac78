"""What the reward model reads: one format, one code path, for training and for scoring."""

import re
from typing import Any

from cooper_rl.data.text import normalise
from cooper_rl.errors import InputError

_MARKER = "\n[...]\n"
_FEWEST_COMPLETION_TOKENS = 8
_TAG = re.compile(r"<\s*/?\s*(?:question|reference_answer|completion)\s*>", re.IGNORECASE)


class RewardModelInput:
    """Turns (question, reference answer, completion) into the token ids a reward model is trained and scored on.

    The format is that of the released VerifyRM: three tagged fields, no chat template. White space around a field
    is dropped and the completion is normalised, so that format never tells one kind of completion from another;
    special tokens spelled out inside a text are ordinary characters, and the format's own tags inside a text lose their
    angle brackets, or a completion could bring its own reference answer. Needs a tokenizer of the Rust kind ("fast"),
    whose offsets place the cut.
    """

    def __init__(self, tokenizer: Any, max_tokens: int) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(f"{type(tokenizer).__name__}: the reward model needs a fast tokenizer (tokenizer.json)")
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._marker_ids: list[int] = tokenizer(_MARKER, add_special_tokens=False)["input_ids"]

    def text(self, question: str, answer: str, completion: str) -> str:
        """The format of algorithm.md, section 2."""
        return _before(question, answer) + _field(normalise(completion)) + "</completion>"

    def encode(self, question: str, answer: str, completion: str) -> list[int]:
        """Token ids, at most `max_tokens`.

        A longer input loses the middle of the *completion*, replaced by a short marker; its end, where the answer
        is, and the question and reference stay whole. Raises InputError when those alone leave no room.
        """
        text = self.text(question, answer, completion)
        token_ids: list[int] = self._tokenizer(text, split_special_tokens=True)["input_ids"]
        if len(token_ids) <= self._max_tokens:
            return token_ids
        start = len(_before(question, answer))
        first, last = self._completion_tokens(text, start, start + len(_field(normalise(completion))))
        room = self._max_tokens - (len(token_ids) - (last - first)) - len(self._marker_ids)
        if room < _FEWEST_COMPLETION_TOKENS:
            raise InputError(
                f"question and reference answer take {len(token_ids) - (last - first)} tokens, which leaves no room "
                f"for a completion in max_input_tokens: {self._max_tokens}; raise it or drop the problem: "
                f"{question[:80]!r}"
            )
        head, tail = room // 2, room - room // 2
        return token_ids[: first + head] + self._marker_ids + token_ids[last - tail :]

    def _completion_tokens(self, text: str, start: int, end: int) -> tuple[int, int]:
        """The range of tokens that lie inside the completion; one that straddles its border is outside."""
        encoded = self._tokenizer(text, split_special_tokens=True, return_offsets_mapping=True)
        inside = [
            index
            for index, (left, right) in enumerate(encoded["offset_mapping"])
            if left >= start and right <= end and right > left
        ]
        return (inside[0], inside[-1] + 1) if inside else (0, 0)


def _before(question: str, answer: str) -> str:
    question, answer = _field(question.strip()), _field(answer.strip())
    return f"<question>{question}</question>\n<reference_answer>{answer}</reference_answer>\n<completion>"


def _field(text: str) -> str:
    """The text with forged tags made harmless; its length stays the same."""
    return _TAG.sub(lambda tag: f"[{tag.group()[1:-1]}]", text)
