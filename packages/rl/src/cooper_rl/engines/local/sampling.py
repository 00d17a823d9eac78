"""Draws tokens: filters, reproducible random numbers, and when a completion ends or is cut.

Filters follow the temperature in the order of Hugging Face `generate`: top-k, top-p, min-p, each on the renormalised
output of the one before.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import GenerationConfig, PreTrainedTokenizerBase

from cooper_base.data.thoughts import Decoder
from cooper_base.errors import InputError
from cooper_rl.engines.config import SamplingParams

Logits = Float[Tensor, "rows vocab"]
Rows = Float[Tensor, " rows"]

NUCLEUS_CANDIDATES = 1024  # most likely tokens that top-p looks at before it sorts the whole vocabulary
_CHUNK = 64  # random numbers of a row that are drawn at once
_BLOCK = 256  # vocabulary tokens that are summed up together
_SLACK = 16  # characters decoded beyond a stop string: the first may be wrong without their left neighbour


class RowNoise:
    """One stream of uniform random numbers per completion, keyed by (seed, prompt index, sample index), from
    Philox-4x64 (Salmon et al. 2011). A completion's random numbers thus depend neither on the rest of the batch nor on
    the device.
    """

    def __init__(self, seed: int, keys: Sequence[tuple[int, int]]) -> None:
        self._streams = [
            np.random.Generator(np.random.Philox(key=[seed % 2**64, (prompt << 32) + sample]))
            for prompt, sample in keys
        ]
        self._table = np.empty((len(keys), _CHUNK))

    def uniforms(self, step: int, rows: Sequence[int] | Int[np.ndarray, " rows"]) -> np.ndarray:
        """Numbers in [0, 1) for token `step` of `rows`, float64 [len(rows)]. Steps must come in order, from 0."""
        if step % _CHUNK == 0:
            for row in rows:
                self._table[row] = self._streams[row].random(_CHUNK)
        return self._table[rows, step % _CHUNK]


def draw_tokens(
    logits: Logits, uniforms: Rows, params: SamplingParams, forbidden: Int[Tensor, " tokens"] | None = None
) -> tuple[Int[Tensor, " rows"], Rows]:
    """Draw one token per row; return token ids and their log-probabilities (nats).

    These are log softmax(logits / temperature), as in a learner, or log softmax(logits) at temperature 0, whatever the
    filters and the `forbidden` tokens. Raises FloatingPointError for logits that are not finite.
    """
    logits = logits.float()
    uniforms = uniforms.to(_sums_in(logits.device)).to(logits.device)
    if params.temperature not in (0, 1):
        logits = logits / params.temperature
    peak = logits.amax(dim=-1, keepdim=True)
    weights = (logits - peak).exp_()
    normaliser = weights.sum(dim=-1, keepdim=True).log_() + peak
    if params.temperature == 0:
        tokens = _without(forbidden, logits).argmax(dim=-1, keepdim=True)
    elif params.top_k > 0 or params.top_p < 1:
        tokens = invert_cumulative(_weights(filter_logits(_without(forbidden, logits), params)), uniforms)
    elif forbidden is None:
        tokens = invert_cumulative(weights, uniforms)
    else:
        tokens = invert_cumulative(weights.index_fill_(1, forbidden, 0), uniforms)
        # Beside a likely token that is forbidden, the weights of all others may have been rounded to 0.
        led = (logits.index_select(1, forbidden) >= peak).any(dim=-1).nonzero().squeeze(-1)
        if len(led):
            tokens[led] = invert_cumulative(_weights(_without(forbidden, logits[led])), uniforms[led])
    logprobs = (logits.gather(-1, tokens) - normaliser).squeeze(-1)
    if not bool(torch.isfinite(logprobs).all()):
        raise FloatingPointError("the sampled model's logits are not finite: its weights have probably diverged")
    return tokens.squeeze(-1), logprobs


def _weights(logits: Logits) -> Logits:
    return (logits - logits.amax(dim=-1, keepdim=True)).exp_()


def _sums_in(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64


def _without(forbidden: Int[Tensor, " tokens"] | None, logits: Logits) -> Logits:
    return logits if forbidden is None else logits.index_fill(1, forbidden, -torch.inf)


def invert_cumulative(weights: Logits, uniforms: Rows) -> Int[Tensor, "rows one"]:
    """The first token whose cumulative weight exceeds `uniforms` times the row's total. Its weight is never 0.

    Sums are in float64 if the device has it, as a float32 sum over 1e5 tokens would lose the unlikely ones. Those of
    whole blocks tell which block the token is in, and only that one is searched token by token.
    """
    dtype = _sums_in(weights.device)
    # 1 - eps/2 is the largest number below 1. Without it, rounding to float32 could turn a uniform number into 1.
    below_one = 1 - torch.finfo(dtype).eps / 2
    whole = weights.shape[-1] // _BLOCK * _BLOCK
    sums = weights[:, :whole].unflatten(1, (-1, _BLOCK)).sum(dim=-1)
    if whole < weights.shape[-1]:
        sums = torch.cat([sums, weights[:, whole:].sum(dim=-1, keepdim=True)], dim=1)
    sums = sums.to(dtype)
    ends = sums.cumsum(dim=-1)
    targets = uniforms.to(dtype).clamp(max=below_one).unsqueeze(-1) * ends[:, -1:]
    # The clamps only matter for NaN weights, which would otherwise give an index outside the vocabulary.
    block = torch.searchsorted(ends, targets, right=True).clamp(max=ends.shape[-1] - 1)
    start = (ends - sums).gather(1, block)
    tokens = block * _BLOCK + torch.arange(_BLOCK, device=weights.device)
    inside = weights.gather(1, tokens.clamp(max=weights.shape[-1] - 1)).to(dtype)
    inside = inside.masked_fill(tokens >= weights.shape[-1], 0)
    place = torch.searchsorted(inside.cumsum(dim=-1), targets - start, right=True)
    # The sum of the block may round to just below the target. Then take the last token of the block with any weight.
    last = _BLOCK - 1 - (inside.flip(-1) > 0).int().argmax(dim=-1, keepdim=True)
    return (block * _BLOCK + torch.minimum(place, last)).clamp(max=weights.shape[-1] - 1)


def keep_top_k(logits: Logits, k: int) -> Logits:
    """Keep the `k` most likely tokens of each row, and those tied with the last of them (Fan et al. 2018)."""
    if k >= logits.shape[-1]:
        return logits
    threshold = logits.topk(k, dim=-1).values[:, -1:]
    return logits.masked_fill(logits < threshold, -torch.inf)


def keep_top_p(logits: Logits, p: float) -> Logits:
    """Keep the smallest set of most likely tokens whose probability reaches `p` (Holtzman et al. 2020), never none."""
    count = min(NUCLEUS_CANDIDATES, logits.shape[-1])
    total = logits.logsumexp(dim=-1, keepdim=True)
    candidates, order = logits.topk(count, dim=-1)
    mass = (candidates - total).exp().cumsum(dim=-1)
    if count < logits.shape[-1] and bool((mass[:, -1] < p).any()):
        candidates, order = logits.sort(dim=-1, descending=True)
        mass = (candidates - total).exp().cumsum(dim=-1)
    # A token stays while the mass before it has not reached p.
    inside = torch.ones_like(mass, dtype=torch.bool)
    inside[:, 1:] = mass[:, :-1] < p
    kept = torch.full_like(logits, -torch.inf)
    return kept.scatter_(-1, order, candidates.masked_fill(~inside, -torch.inf))


def filter_logits(logits: Logits, params: SamplingParams) -> Logits:
    if params.top_k > 0:
        logits = keep_top_k(logits, params.top_k)
    if params.top_p < 1:
        logits = keep_top_p(logits, params.top_p)
    return logits


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
        self._tokenizer, self._decoder = tokenizer, Decoder(tokenizer, params.thought)
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
        decoded = self._tokenizer.decode(
            _listed(token_ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        assert isinstance(decoded, str)
        return decoded


def _listed(token_ids: Sequence[int] | Int[np.ndarray, " T"]) -> list[int]:
    return token_ids.tolist() if isinstance(token_ids, np.ndarray) else list(token_ids)
