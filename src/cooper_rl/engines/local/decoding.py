"""Decodes completions: rows under way in a batch, and the waves in which rows enter it, some while others go on."""

import inspect
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from cooper_rl.engines.config import SamplingParams
from cooper_rl.engines.cpu import CompactDecoder, GroupedCache
from cooper_rl.engines.kv_cache import build_cache, filling_gaps
from cooper_rl.engines.local.sampling import RowNoise, StopRule, draw_tokens
from cooper_rl.rollouts import Column, Samples


class Drafts:
    """B completions. Completion i is sample `sample[i]` of prompt `prompt[i]` and has at most `limit[i]` tokens.

    Token t is in column t of arrays as wide as the largest limit, which take memory only where something is written.
    """

    def __init__(self, limits: Sequence[int], n: int, prompts: range) -> None:
        """`n` drafts for each of these prompts; `limits` are those of all."""
        chosen = np.array(prompts, int)
        self.prompt, self.sample = np.repeat(chosen, n), np.tile(np.arange(n), len(chosen))
        self.limit = np.repeat(np.array(limits, int)[chosen], n)
        shape = (len(self), int(self.limit.max(initial=0)))
        self._token_ids, self._logprobs = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        self._lengths, self._stopped = np.zeros(len(self), np.int64), np.zeros(len(self), bool)

    def __len__(self) -> int:
        return len(self.prompt)

    def open(self, rows: Int[np.ndarray, " R"]) -> np.ndarray:
        """Whether each of these completions goes on."""
        return ~self._stopped[rows] & (self._lengths[rows] < self.limit[rows])

    def extend(
        self,
        rows: Int[np.ndarray, " R"],
        token_ids: Int[np.ndarray, " R"],
        logprobs: Float[np.ndarray, " R"],
        rule: StopRule,
    ) -> None:
        """Append a token to each of these completions that still goes on, and stop those that end with it."""
        going = self.open(rows)
        rows, token_ids, logprobs = rows[going], token_ids[going], logprobs[going]
        places = self._lengths[rows]
        self._token_ids[rows, places] = token_ids
        self._logprobs[rows, places] = logprobs
        self._lengths[rows] += 1
        stopped = rule.stop_at(token_ids)
        for i in np.flatnonzero(rule.may_end_a_text(token_ids) & ~stopped):
            stopped[i] = rule.ends_a_text(self._token_ids[rows[i], : places[i] + 1])
        self._stopped[rows] = stopped

    def samples(self, rule: StopRule) -> Samples:
        """All completions, with the tokens drawn so far."""
        drawn = [row[:length] for row, length in zip(self._token_ids, self._lengths, strict=True)]
        logprobs = [row[:length] for row, length in zip(self._logprobs, self._lengths, strict=True)]
        logprobs_N = Column.of(logprobs, np.float32).values
        return Samples(token_ids=Column.of(drawn), logprobs=logprobs_N, stopped=self._stopped, texts=rule.texts(drawn))


WORTH_SHARING = 64
"""Tokens saved from which a separate pass over the tokens that all prompts share takes less time than it saves."""


class DecodingBatch:
    """Rows that grow by one token per step. Use it under `torch.inference_mode`, with the model in evaluation mode."""

    def __init__(self, model: PreTrainedModel, compact: CompactDecoder | None = None, large: bool = False) -> None:
        """The compact decoder of a `large` model reads the prompts too, because that pays."""
        self._model, self._compact, self._large = model, compact, large
        self._device = model.device
        # Of a finished row that waits to leave; absolute positions end here, and what it computes is not used.
        self._last_position = (getattr(model.config.get_text_config(), "max_position_embeddings", None) or 2**62) - 1
        self._cache: Any = build_cache(model.config)
        accepted = inspect.signature(model.forward).parameters
        takes_anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values())
        self._pass_positions = "position_ids" in accepted or takes_anything
        self._cache_name = "cache_params" if "cache_params" in accepted else "past_key_values"
        self._keep_logits = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._grouped: GroupedCache | None = None
        self._positions = torch.empty(0, 1, dtype=torch.long)
        self._mask: Tensor | None = None

    def prefill(self, prompts: Sequence[Sequence[int]], repeats: Sequence[int]) -> Float[Tensor, "rows vocab"]:
        """Run each prompt once, then make `repeats[i]` rows of prompt i; return the logits of the next token."""
        shared = self._prefill_shared(prompts)
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        width = int(lengths.max())
        tokens = torch.zeros(len(prompts), width - shared, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            tokens[row, width - len(prompt) :] = torch.tensor(prompt[shared:])
        # The shared tokens come first, then the padding, then the rest of each prompt.
        columns = torch.arange(shared, width)
        positions = (columns - (width - lengths[:, None])).to(self._device)
        # Without padding no mask is needed, and attention can take its fast causal path.
        real = torch.cat([positions.new_ones(len(prompts), shared), positions >= shared], dim=-1)
        self._mask = real if bool((lengths < width).any()) else None
        positions = positions.clamp(min=shared)
        logits = self._forward(tokens.to(self._device), positions)
        self._positions = positions[:, -1:]
        copies = torch.repeat_interleave(torch.arange(len(prompts)), torch.tensor(repeats)).to(self._device)
        if self._compact is not None:
            self._grouped = GroupedCache(self._cache, self._mask, copies)
            self._cache = build_cache(self._model.config)  # so that prompts without rows can be freed
            self._positions = self._positions.index_select(0, copies)
        else:
            self.keep(copies)
        return logits.index_select(0, copies)

    def _prefill_shared(self, prompts: Sequence[Sequence[int]]) -> int:
        """Run the tokens with which all prompts begin once, if that pays. Returns how many are in the cache now."""
        if not self._large:
            return 0
        shortest = min(map(len, prompts)) - 1  # one token of each prompt must be left to give logits
        alike = itertools.takewhile(lambda column: len(set(column)) == 1, zip(*prompts, strict=False))
        shared = min(shortest, sum(1 for _ in alike))
        if (len(prompts) - 1) * shared < WORTH_SHARING:
            return 0
        self._forward(torch.tensor([prompts[0][:shared]]), torch.arange(shared)[None])
        self._cache.reorder_cache(torch.zeros(len(prompts), dtype=torch.long))
        return shared

    @classmethod
    def step_together(
        cls, batches: Sequence[Self], token_ids: Sequence[Int[Tensor, " rows"]]
    ) -> Sequence[Float[Tensor, "rows vocab"]]:
        """Append one token to every row of several batches of one model. Returns each one's logits of the next token.

        Batches with a compact decoder take one pass together.
        """
        for batch in batches:
            batch._positions = (batch._positions + 1).clamp(max=batch._last_position)
        caches = [batch._grouped for batch in batches if batch._grouped is not None]
        if caches and (compact := batches[0]._compact) is not None:
            positions = torch.cat([batch._positions for batch in batches])
            return compact.step(torch.cat(list(token_ids)), positions, caches).split([len(cache) for cache in caches])
        for batch in batches:
            if batch._mask is not None:
                batch._mask = F.pad(batch._mask, (0, 1), value=1)
        return [batch._forward(ids[:, None], batch._positions) for batch, ids in zip(batches, token_ids, strict=True)]

    def keep(self, rows: Int[Tensor, " kept"]) -> None:
        """Continue with these rows only, in this order."""
        self._positions = self._positions.index_select(0, rows)
        if self._grouped is not None:
            self._grouped.keep(rows)
            return
        self._cache.reorder_cache(rows)
        if self._mask is not None:
            self._mask = self._mask.index_select(0, rows)

    def _forward(self, token_ids: Tensor, positions: Tensor) -> Tensor:
        if self._compact is not None and self._large:
            return self._compact.prefill(token_ids, positions, self._mask, self._cache)
        arguments = {self._cache_name: self._cache, **self._keep_logits}
        if self._pass_positions:
            arguments["position_ids"] = positions
        output = self._model(input_ids=token_ids, attention_mask=self._mask, use_cache=True, **arguments)
        return output.logits[:, -1]


ENTER_ABOVE = 0.25
"""Rows enter a batch under way once this share of its places is free. A prefill of few prompts is slow, and so is
attention in many small waves; a batch that is not quite full costs little."""
LEAVE_ABOVE = 0.2
"""Finished rows leave the batch once they are at least this share of their wave. Leaving may cost a copy of the cache,
and the kernels of a matrix product are compiled once for each number of rows."""
LEAVE_LARGE_ABOVE = 0.03
"""The same for a large model's compact decoder. Its rows leave without a copy, and their products cost more."""


@dataclass(frozen=True)
class DecodingJob:
    """The model, the prompts, the drafts to complete, and how tokens are drawn."""

    model: PreTrainedModel
    compact: CompactDecoder | None
    large: bool
    """Whether `compact` is of a large model."""
    prompts: Sequence[Sequence[int]]
    drafts: Drafts
    params: SamplingParams
    rule: StopRule
    seed: int


class Wave:
    """Rows under way that entered together, so all have the same number of tokens after their prompt."""

    def __init__(self, job: DecodingJob, rows: Int[np.ndarray, " rows"]) -> None:
        """Prefill the prompts of the drafts `rows`. Drafts of one prompt must be neighbours."""
        drafts = job.drafts
        prompts, samples = drafts.prompt[rows].tolist(), drafts.sample[rows].tolist()
        counts = Counter(prompts)
        self.batch = DecodingBatch(job.model, job.compact, job.large)
        self._job, self._rows, self._step = job, rows, 0
        self._slots = np.arange(len(rows))  # indices of `rows` that are still in the batch
        self._noise = RowNoise(job.seed, list(zip(prompts, samples, strict=True)))
        self.logits = self.batch.prefill([job.prompts[prompt] for prompt in counts], list(counts.values()))
        self.tokens = torch.empty(0, dtype=torch.long)
        """The last token of each row, once one is drawn."""
        self._stop_ids = torch.tensor(sorted(job.rule.token_ids), device=self.logits.device, dtype=torch.long)

    def __len__(self) -> int:
        """Rows in the batch; 0 once all completions are finished."""
        return len(self._slots)

    def draw(self) -> None:
        """Draw a token for every row from `logits`. Then let finished rows leave, if there are enough of them."""
        job, rows = self._job, self._rows[self._slots]
        uniforms = torch.from_numpy(self._noise.uniforms(self._step, self._slots))
        forbidden = self._stop_ids if self._step < job.params.min_tokens else None
        tokens, logprobs = draw_tokens(self.logits, uniforms, job.params, forbidden)
        self._step += 1
        job.drafts.extend(rows, tokens.cpu().numpy(), logprobs.cpu().numpy(), job.rule)
        going = np.flatnonzero(job.drafts.open(rows))
        if not len(going):
            self._slots = going
        elif len(going) <= (1 - (LEAVE_LARGE_ABOVE if job.large else LEAVE_ABOVE)) * len(rows):
            # Keeping the order costs copies, but a row's place shows in its last digits.
            kept = torch.from_numpy(going)
            kept = filling_gaps(kept) if job.large else kept
            self._slots = self._slots[kept.numpy()]
            kept = kept.to(tokens.device)
            self.batch.keep(kept)
            tokens = tokens.index_select(0, kept)
        self.tokens = tokens


def complete(queue: Int[np.ndarray, " B"], job: DecodingJob, max_rows: int) -> None:
    """Complete the drafts `queue`, at most `max_rows` (0: all) at a time.

    The next wave enters once there is room for it, or, without a compact decoder, once the one before it has ended.
    """
    size = max_rows or len(queue)
    under_way: list[Wave] = []
    while len(queue) or under_way:
        free = size - sum(map(len, under_way))
        enough = free >= min(len(queue), ENTER_ABOVE * size)
        if len(queue) and (not under_way or (enough and job.compact is not None)):
            count = _whole_groups(job.drafts.prompt[queue], free)
            under_way.append(Wave(job, queue[:count]))
            queue = queue[count:]
        for wave in under_way:
            wave.draw()
        under_way = [wave for wave in under_way if len(wave)]
        logits = DecodingBatch.step_together([wave.batch for wave in under_way], [wave.tokens for wave in under_way])
        for wave, its_own in zip(under_way, logits, strict=True):
            wave.logits = its_own


def _whole_groups(prompts: Int[np.ndarray, " B"], most: int) -> int:
    """The largest number of rows up to `most` that does not divide a prompt's rows, or `most` if there is none."""
    if len(prompts) <= most:
        return len(prompts)
    ends = np.flatnonzero(np.diff(prompts[: most + 1])) + 1
    return int(ends[-1]) if len(ends) else most
