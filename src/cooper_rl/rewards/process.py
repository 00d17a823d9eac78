"""The steps of completions, and a reward model's score at the end of each."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache

import torch

from cooper_rl.policy.process import ProcessCredit, Steps
from cooper_rl.rewards.context import RewardModel
from cooper_rl.rollouts import Answer, AnswerGroup, Rollouts

Span = tuple[int, int]
Decode = Callable[[Sequence[int]], str]
"""The text of token ids, without special tokens."""


def score_steps(model: RewardModel, rollouts: Rollouts, decode: Decode, config: ProcessCredit) -> list[Steps]:
    """The steps of every completion with their rewards 2 sigmoid(logit) - 1, where the logit is that of the completion
    up to the step's end. It costs one row to score for each step."""
    texts = [split_steps(text, config.separator) for text in rollouts.texts]
    groups = []
    for problem, start, end in zip(rollouts.problems, rollouts.offsets[:-1], rollouts.offsets[1:], strict=True):
        prefixes = [Answer(rollouts.texts[i][:stop]) for i in range(start, end) for _, stop in texts[i]]
        groups.append(AnswerGroup(problem.id, problem, prefixes))
    logits = model.logits(groups).flat.double() if any(texts) else torch.zeros(0, dtype=torch.float64)
    rewards = (2 * logits.sigmoid() - 1).split([len(spans) for spans in texts])
    return [
        Steps(token_spans(token_ids.tolist(), spans, decode), own)
        for token_ids, spans, own in zip(rollouts.token_ids, texts, rewards, strict=True)
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

    found: list[Span] = []
    for number, (start, end) in enumerate(spans, 1):
        # The first token that ends beyond the step's first character, and the first that begins at its end or later.
        first = bisect_left(range(1, len(token_ids) + 1), start + 1, key=characters)
        last = bisect_left(range(len(token_ids) + 1), end, key=characters)
        first = max(first, found[-1][1] if found else 0)
        found.append((first, max(first, len(token_ids) if number == len(spans) else last)))
    return found
