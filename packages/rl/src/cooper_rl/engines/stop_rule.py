"""When a completion ends or is cut, and its text."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Int
from transformers import GenerationConfig, PreTrainedTokenizerBase

from cooper_base.data.thoughts import Decoder
from cooper_base.errors import InputError
from cooper_rl.engines.config import SamplingParams

_SLACK = 16  # characters decoded beyond a stop string: the first may be wrong without their left neighbour


def completion_limits(prompts: Sequence[Sequence[int]], max_tokens: int, context: int | None, full: str) -> list[int]:
    """The most tokens that may follow each prompt: `max_tokens`, or the rest of the `context` if that is less.

    Raises InputError, with the prompt's number and length, for one that is empty or fills the context; `full` then ends
    the message: "the model's context is 512, so nothing can follow it".
    """
    for index, prompt in enumerate(prompts):
        if len(prompt) == 0:
            raise InputError(f"prompt {index} is empty: the model needs at least one token to continue from")
        if context is not None and len(prompt) >= context:
            raise InputError(f"prompt {index} has {len(prompt)} tokens and {full}")
    return [max_tokens if context is None else min(max_tokens, context - len(prompt)) for prompt in prompts]


def end_of_sequence_ids(generation: GenerationConfig | None, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    declared: list[Any] = [getattr(generation, "eos_token_id", None), tokenizer.eos_token_id]
    return {id for ids in declared if ids is not None for id in ([ids] if isinstance(ids, int) else ids)}


class StopRule:
    """Whether the last token ends a completion, and a completion's text. A stop string that is a special token
    (`<|im_end|>`) stops by its id, since the text has no such tokens.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, params: SamplingParams, end_of_sequence: Iterable[int]):
        special = dict(zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True))
        stops = [special[text] for text in params.stop if text in special]
        self.token_ids = {*end_of_sequence, *params.stop_token_ids, *stops}
        self._stop_ids = np.array(sorted(self.token_ids), dtype=np.int64)
        self.strings = [text for text in params.stop if text and text not in special]
        self._decoder = Decoder(tokenizer, params.thought)
        self._last_characters = {text[-1] for text in self.strings}
        self._longest = max(map(len, self.strings), default=0)
        self._can_complete: dict[int, bool] = {}

    def reached(self, token_ids: Sequence[int]) -> bool:
        """Whether the completion `token_ids`, not stopped before its last token, stops with it."""
        last = np.asarray(token_ids[-1:])
        return bool(self.stop_at(last)[0] or (self.may_end_a_text(last)[0] and self.ends_a_text(token_ids)))

    def stop_at(self, last: Int[np.ndarray, " R"]) -> Bool[np.ndarray, " R"]:
        return np.isin(last, self._stop_ids)

    def may_end_a_text(self, last: Int[np.ndarray, " R"]) -> Bool[np.ndarray, " R"]:
        """Which of these tokens could complete a stop string."""
        if not self.strings:
            return np.zeros(len(last), bool)
        return np.array([self._may_complete(token_id) for token_id in last.tolist()], bool)

    def ends_a_text(self, token_ids: Sequence[int] | Int[np.ndarray, " T"]) -> bool:
        """Whether a completion whose last token could complete a stop string ends with one."""
        # The end of the text, long enough to hold every stop string that the last token could complete.
        needed = self._longest + len(self._decode(token_ids[-1:])) + _SLACK
        window, tail = needed, self._decode(token_ids[-needed:])
        while window < len(token_ids) and len(tail) < needed:
            window *= 2
            tail = self._decode(token_ids[-window:])
        return any(text in tail for text in self.strings)

    def texts(
        self,
        completions: Sequence[Sequence[int] | Int[np.ndarray, " T"]],
        prompts: Sequence[Sequence[int]] | None = None,
    ) -> list[str]:
        """Each completion without special tokens, cut before its first stop string.

        `prompts` holds the prompt of each completion. A thought that begins in the prompt begins in the text too.
        """
        texts = [self._decoder.text(_listed(token_ids)) for token_ids in completions]
        if prompts is not None:
            opened = {id(prompt): self._decoder.opened(prompt) for prompt in {id(one): one for one in prompts}.values()}
            texts = [opened[id(prompt)] + text for prompt, text in zip(prompts, texts, strict=True)]
        starts = ([at for stop in self.strings if (at := text.find(stop)) >= 0] for text in texts)
        return [text[: min(its, default=None)] for text, its in zip(texts, starts, strict=True)]

    def _may_complete(self, token_id: int) -> bool:
        """Whether a token alone could add the last character of a stop string. A decoder may strip its spaces."""
        if token_id not in self._can_complete:
            piece = self._decode([token_id])
            some = any(last.isspace() or last in piece for last in self._last_characters)
            self._can_complete[token_id] = some or "\ufffd" in piece  # part of a character
        return self._can_complete[token_id]

    def _decode(self, token_ids: Sequence[int] | Int[np.ndarray, " T"]) -> str:
        return self._decoder.plain(_listed(token_ids))


def _listed(token_ids: Sequence[int] | Int[np.ndarray, " T"]) -> list[int]:
    return token_ids.tolist() if isinstance(token_ids, np.ndarray) else list(token_ids)
