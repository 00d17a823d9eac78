"""The steps of a completion: where they begin and end, in characters and in tokens, and the reward of each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from cooper_rl import Answer, AnswerGroup

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from cooper_rl import RewardModel
    from cooper_rl.records import Rollouts

Span = tuple[int, int]
Decode = Callable[[Sequence[int]], str]
"""The text of token ids, without special tokens."""


@dataclass(frozen=True)
class Steps:
    """The steps of one completion: step k has the tokens `spans[k][0]` up to, but not including, `spans[k][1]`.

    Spans are in order and do not overlap. `rewards` holds a reward in [-1, 1] for each step.
    """

    spans: Sequence[tuple[int, int]]
    rewards: Float[Tensor, " S"]


def score_steps(model: RewardModel, rollouts: Rollouts, decode: Decode, separator: str) -> list[Steps]:
    """The steps of every completion with their rewards 2 sigmoid(logit) - 1, where the logit is that of the completion
    up to the step's end. It costs one row to score for each step."""
    import torch  # noqa: PLC0415 - configuration records do without it

    texts = [split_steps(text, separator) for text in rollouts.texts]
    groups = []
    for problem, start, end in zip(rollouts.problems, rollouts.offsets[:-1], rollouts.offsets[1:], strict=True):
        prefixes = [Answer(rollouts.texts[i][:stop]) for i in range(start, end) for _, stop in texts[i]]
        groups.append(AnswerGroup(problem.id, problem, prefixes))
    logits = model.logits(groups).flat.double() if any(texts) else torch.zeros(0, dtype=torch.float64)
    rewards = (2 * logits.sigmoid() - 1).split([len(spans) for spans in texts])
    return [
        Steps(token_spans(token_ids.tolist(), spans, decode), of_completion)
        for token_ids, spans, of_completion in zip(rollouts.token_ids, texts, rewards, strict=True)
    ]


def split_steps(text: str, separator: str) -> list[Span]:
    """Where the steps of a text begin and end, without separators around them. Blank steps are left out."""
    spans, start = [], 0
    for piece in text.split(separator):
        if piece.strip():
            spans.append((start, start + len(piece)))
        start += len(piece) + len(separator)
    return spans


def token_spans(token_ids: Sequence[int], spans: Sequence[Span], decode: Decode) -> list[Span]:
    """The tokens of each step, from its characters.

    A token that belongs to a step and to the separator after it counts to the step. The last step takes all tokens that
    follow, among them the end of the sequence.
    """

    @cache
    def characters(tokens: int) -> int:
        return len(decode(token_ids[:tokens]))

    of_tokens: list[Span] = []
    for number, (start, end) in enumerate(spans, 1):
        # The first token that ends beyond the step's first character, and the first that begins at its end or later.
        first = bisect_left(range(1, len(token_ids) + 1), start + 1, key=characters)
        last = bisect_left(range(len(token_ids) + 1), end, key=characters)
        first = max(first, of_tokens[-1][1] if of_tokens else 0)
        of_tokens.append((first, max(first, len(token_ids) if number == len(spans) else last)))
    return of_tokens
