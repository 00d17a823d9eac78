"""The reward model's input: one format and one code path for training and scoring."""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cooper_base.data.labelled import LabelledCompletion
from cooper_base.data.text import normalise
from cooper_base.data.transcript import last_turn
from cooper_base.errors import InputError, value_or_raise
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.engines.model_folder import padding_token
from cooper_rl.engines.yes_no import chat_around, yes_no_of

logger = logging.getLogger(__name__)

_MARKER = "\n[...]\n"
_FEWEST_COMPLETION_TOKENS = 8
_AT_ONCE = 2**18
"""Characters that the tokenizer gets at once: it keeps hundreds of bytes a token until it is done with them."""
_TAG = re.compile(r"<\s*+(?:/\s*+)?(?:question|reference_answer|completion)\s*+>", re.IGNORECASE)


class RewardModelInput:
    """Turns (question, reference answer, completion) into the token ids that a reward model reads.

    The format is that of the released VerifyRM: three tagged fields, no chat template. Whitespace around a field is
    dropped and the completion is normalised, so that formatting never tells one kind of completion from another.
    Special tokens spelled out inside a text count as ordinary characters. The format's own tags lose their angle
    brackets inside a text; otherwise a completion could supply its own reference answer. The tokenizer must be a
    "fast" one, because its offsets show where to cut.

    A language model that is asked (`kind: yes_no`) reads the question `ask` after the fields and, if the tokenizer has
    a chat template, all of it as the user's message, up to the reply.
    """

    reads_reference = True
    """Whether the reference answer is part of the input."""

    def __init__(self, tokenizer: Any, max_tokens: int, ask: str | None = None) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(f"{type(tokenizer).__name__}: the reward model needs a fast tokenizer (tokenizer.json)")
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._ask = ask
        around = [] if ask is None else chat_around(tokenizer)
        self._chat: list[list[int]] = [tokenizer.encode(part, add_special_tokens=False) for part in around]
        self._how = {"split_special_tokens": True, "add_special_tokens": not self._chat}
        self._marker_ids: list[int] = tokenizer(_MARKER, add_special_tokens=False)["input_ids"]

    @staticmethod
    def of(config: ScorerConfig, tokenizer: Any) -> "RewardModelInput":
        """The input of the reward model with these settings. Raises InputError as `yes_no_of` and `ChatInput` do."""
        from cooper_rl.engines.chat_input import ChatInput  # noqa: PLC0415 - it derives from this class

        yes_no = yes_no_of(config, tokenizer)
        if config.input == "tagged":
            return RewardModelInput(tokenizer, config.max_input_tokens, yes_no and yes_no.ask)
        if yes_no is not None:
            raise InputError(
                f"{config.model}: input: {config.input} is for a model with a head, and this one was saved as "
                "kind: yes_no, which has a chat of its own; set input: tagged"
            )
        return ChatInput(tokenizer, config.max_input_tokens, config.reads_reference, padding_token(config.model))

    def text(self, question: str, answer: str, completion: str) -> str:
        """The input as text, before it is cut to `max_tokens`; of a chat, the user's message."""
        return _before(question, answer) + _field(normalise(completion)) + "</completion>" + (self._ask or "")

    def encode(self, question: str, answer: str, completion: str) -> list[int]:
        """Token ids, at most `max_tokens`.

        In a longer input, a short marker replaces the middle of the *completion*. The question, the reference and the
        end of the completion, where the answer is, stay whole; so does the last of several turns, if it fits.
        Raises InputError if question and reference leave no room for a completion.
        """
        return self.encode_all([(question, answer, completion)])[0]

    def encode_all(self, rows: Sequence[tuple[str, str, str]]) -> list[list[int]]:
        """What `encode` gives for each row (question, answer, completion). Raises InputError as it does."""
        return [value_or_raise(encoded) for encoded in self.encode_each(rows)]

    def encode_each(self, rows: Sequence[tuple[str, str, str]]) -> Iterator[list[int] | InputError]:
        """What `encode` gives for each row, or the error that it raises. The tokenizer works on all cores."""
        for some in _chunks(rows):
            texts = [self.text(*row) for row in some]
            encoded = self._tokenizer(texts, return_attention_mask=False, return_token_type_ids=False, **self._how)
            for row, token_ids, encoding in zip(some, encoded["input_ids"], encoded.encodings, strict=True):
                if self._ask is not None and not self._chat and token_ids[-1] == self._tokenizer.eos_token_id:
                    token_ids.pop()  # some tokenizers end a text with it, and nothing would be left to answer
                whole = self._around(token_ids)
                yield whole if len(whole) <= self._max_tokens else self._cut(row, token_ids, encoding.offsets)

    def _around(self, token_ids: list[int]) -> list[int]:
        return self._chat[0] + token_ids + self._chat[1] if self._chat else token_ids

    def _span(self, row: tuple[str, str, str]) -> tuple[int, int, int]:
        """Where the completion begins and ends in the row's text, and where its last turn begins."""
        question, answer, completion = row
        start, completion = len(_before(question, answer)), _field(normalise(completion))
        return start, start + len(completion), start + last_turn(completion)

    def _cut(
        self, row: tuple[str, str, str], token_ids: list[int], offsets: Sequence[tuple[int, int]]
    ) -> list[int] | InputError:
        start, end, reply = self._span(row)
        # A token that straddles the completion's border counts as outside.
        inside = [i for i, (left, right) in enumerate(offsets) if start <= left < right <= end]
        first, last = (inside[0], inside[-1] + 1) if inside else (0, 0)
        taken = len(self._around(token_ids)) - (last - first)
        room = self._max_tokens - taken - len(self._marker_ids)
        if room < _FEWEST_COMPLETION_TOKENS:
            return InputError(
                f"the question and the reference answer take {taken} tokens, so max_input_tokens: {self._max_tokens} "
                f"leaves no room for a completion; raise it or drop the problem: {row[0][:80]!r}"
            )
        last_words = sum(offsets[i][0] >= reply for i in inside) if reply > start else 0
        tail = max(room - room // 2, last_words if last_words <= room else 0)
        head = room - tail
        return self._around(token_ids[: first + head] + self._marker_ids + token_ids[last - tail :])


@dataclass(frozen=True)
class EncodedRow:
    """A reward-model input with its label."""

    token_ids: list[int]
    label: float
    question: str


def encode_rows(encoder: RewardModelInput, rows: Sequence[LabelledCompletion]) -> list[EncodedRow]:
    """Encode rows. Rows whose question alone fills the input are left out, and their number is logged.

    Raises InputError if there are rows but none fits.
    """
    encoded: list[EncodedRow] = []
    left_out: list[str] = []
    inputs = encoder.encode_each([(row.question, row.answer, row.completion) for row in rows])
    for row, token_ids in zip(rows, inputs, strict=True):
        if isinstance(token_ids, InputError):
            left_out.append(f"{row.location}: {token_ids}")
        else:
            encoded.append(EncodedRow(token_ids, row.label, row.question))
    if left_out:
        logger.warning("%d of %d rows do not fit and are left out; first: %s", len(left_out), len(rows), left_out[0])
    if rows and not encoded:
        raise InputError(f"none of the rows fits; first: {left_out[0]}")
    return encoded


def _chunks(rows: Sequence[tuple[str, str, str]]) -> Iterator[list[tuple[str, str, str]]]:
    """The rows in lists that reach `_AT_ONCE` characters with their last row; the final list may have fewer."""
    chunk, size = [], 0
    for row in rows:
        chunk.append(row)
        size += sum(map(len, row))
        if size >= _AT_ONCE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _before(question: str, answer: str) -> str:
    question, answer = _field(question.strip()), _field(answer.strip())
    return f"<question>{question}</question>\n<reference_answer>{answer}</reference_answer>\n<completion>"


def _field(text: str) -> str:
    """The text with the angle brackets of forged tags replaced; its length stays the same."""
    return _TAG.sub(lambda tag: f"[{tag.group()[1:-1]}]", text)
