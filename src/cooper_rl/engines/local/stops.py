"""Decides when a completion ends. Stop strings are found without decoding the whole completion at every token."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool, Int
from transformers import GenerationConfig, PreTrainedTokenizerBase

from cooper_rl.engines.sampling import SamplingParams

SLACK = 16
"""Characters decoded beyond the length of a stop string. The first ones may be wrong without their left neighbour."""


def end_of_sequence_ids(generation: GenerationConfig | None, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """The end-of-sequence tokens of a model's generation config and of the tokenizer."""
    declared = [getattr(generation, "eos_token_id", None), tokenizer.eos_token_id]
    ids: set[int] = set()
    for entry in declared:
        if isinstance(entry, int):
            ids.add(entry)
        elif entry is not None:
            ids.update(entry)
    return ids


class StopRule:
    """Decides whether the last token ends a completion, and gives the text of a completion.

    A stop string that is itself a special token of the tokenizer (`<|im_end|>`) stops by its token id, since
    special tokens are not part of the text.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, params: SamplingParams, end_of_sequence: Iterable[int]
    ) -> None:
        special = dict(zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True))
        self.token_ids = {*end_of_sequence, *params.stop_token_ids}
        self.token_ids.update(special[text] for text in params.stop if text in special)
        self._stop_ids = np.array(sorted(self.token_ids), dtype=np.int64)
        self.strings = [text for text in params.stop if text and text not in special]
        self._tokenizer = tokenizer
        self._last_characters = {text[-1] for text in self.strings}
        self._longest = max(map(len, self.strings), default=0)
        self._can_complete: dict[int, bool] = {}

    def reached(self, token_ids: Sequence[int]) -> bool:
        """Whether the completion `token_ids`, not stopped before its last token, stops with it."""
        last = np.asarray(token_ids[-1:])
        return bool(self.stop_at(last)[0] or (self.may_end_a_text(last)[0] and self.ends_a_text(token_ids)))

    def stop_at(self, last: Int[np.ndarray, " R"]) -> Bool[np.ndarray, " R"]:
        """Whether each of these tokens stops a completion by itself."""
        return np.isin(last, self._stop_ids)

    def may_end_a_text(self, last: Int[np.ndarray, " R"]) -> Bool[np.ndarray, " R"]:
        """Which of these tokens could complete a stop string."""
        if not self.strings:
            return np.zeros(len(last), bool)
        return np.array([self._may_complete(token_id) for token_id in last.tolist()], bool)

    def ends_a_text(self, token_ids: Sequence[int] | Int[np.ndarray, " T"]) -> bool:
        """Whether a completion whose last token could complete a stop string ends with one."""
        tail = self._tail(token_ids)
        return any(text in tail for text in self.strings)

    def texts(self, completions: Sequence[Sequence[int] | Int[np.ndarray, " T"]]) -> list[str]:
        """Each completion decoded without special tokens and cut before its first stop string."""
        return [self._cut(self._decode(token_ids)) for token_ids in completions]

    def _may_complete(self, token_id: int) -> bool:
        """Whether a token alone could add the last character of a stop string. The answer is remembered per token.

        A token may decode to part of a character (shown as U+FFFD), and a decoder may strip the spaces of a single
        token. In both cases the answer is yes.
        """
        known = self._can_complete.get(token_id)
        if known is None:
            piece = self._decode([token_id])
            known = "\ufffd" in piece or any(last.isspace() or last in piece for last in self._last_characters)
            self._can_complete[token_id] = known
        return known

    def _tail(self, token_ids: Sequence[int] | Int[np.ndarray, " T"]) -> str:
        """The end of the text, long enough to hold every stop string that the last token could complete."""
        needed = self._longest + len(self._decode(token_ids[-1:])) + SLACK
        window = needed
        while True:
            tail = self._decode(token_ids[-window:])
            if window >= len(token_ids) or len(tail) >= needed:
                return tail
            window *= 2

    def _cut(self, text: str) -> str:
        found = [position for stop in self.strings if (position := text.find(stop)) >= 0]
        return text[: min(found)] if found else text

    def _decode(self, token_ids: Sequence[int] | Int[np.ndarray, " T"]) -> str:
        ids = token_ids.tolist() if isinstance(token_ids, np.ndarray) else list(token_ids)
        decoded = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert isinstance(decoded, str)
        return decoded
