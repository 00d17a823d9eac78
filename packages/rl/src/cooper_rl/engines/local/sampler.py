"""The native sampler: samples completions in this process, in waves of rows that enter a batch while others
continue."""

import inspect
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cooper_base.progress import tell
from cooper_rl.data.prompts import prompt_room
from cooper_rl.engines.base import PolicyLearner, Prompts, Sampler
from cooper_rl.engines.config import Autocast, SamplingParams
from cooper_rl.engines.cpu import CompactDecoder, GroupedCache, compact_decoder, use_fast_linear
from cooper_rl.engines.kv_cache import build_cache, filling_gaps, tolerates_padding
from cooper_rl.engines.local.device import keep_freed_memory, resolve_device
from cooper_rl.engines.local.models import load_policy, load_tokenizer
from cooper_rl.engines.local.numerics import allow_tf32, halve_frozen, in_bfloat16
from cooper_rl.engines.local.sampling import RowNoise, draw_tokens
from cooper_rl.engines.stop_rule import StopRule, completion_limits, end_of_sequence_ids
from cooper_rl.records import Column, Samples, offsets_of


class Drafts:
    """B completions. Completion i is sample `sample[i]` of prompt `prompt[i]` and has at most `limit[i]` tokens."""

    def __init__(self, limits: Sequence[int], n: int, prompts: range) -> None:
        chosen = np.array(prompts, int)
        self.prompt, self.sample = np.repeat(chosen, n), np.tile(np.arange(n), len(chosen))
        self.limit = np.repeat(np.array(limits, int)[chosen], n)
        shape = (len(self), int(self.limit.max(initial=0)))  # the system gives memory only to pages that are written
        self._token_ids, self._logprobs = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        self._lengths, self._stopped = np.zeros(len(self), np.int64), np.zeros(len(self), bool)

    def __len__(self) -> int:
        return len(self.prompt)

    def open(self, rows: Int[np.ndarray, " R"]) -> np.ndarray:
        return ~self._stopped[rows] & (self._lengths[rows] < self.limit[rows])

    def extend(self, rows: np.ndarray, token_ids: np.ndarray, logprobs: np.ndarray, rule: StopRule) -> None:
        """Append a token to each of these completions that has not ended, and end those that stop with it."""
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

    def tell(self) -> None:
        """Report how many tokens are sampled, of the most that there can be, and how many completions are finished."""
        is_open = self.open(np.arange(len(self)))
        most = np.where(is_open, self.limit, self._lengths).sum()
        note = f"{len(self) - is_open.sum()}/{len(self)} completions"
        tell(int(self._lengths.sum()), int(most), "tokens", note, ceiling=True)

    def samples(self, rule: StopRule, prompts: Prompts) -> Samples:
        drawn = np.arange(self._token_ids.shape[1]) < self._lengths[:, None]
        token_ids = Column(self._token_ids[drawn], offsets_of(self._lengths))
        texts = rule.texts(list(token_ids), [prompts[prompt] for prompt in self.prompt])
        return Samples(token_ids, self._logprobs[drawn], self._stopped, texts)


WORTH_SHARING = 64
"""Tokens saved from which a separate pass over the tokens that all prompts share takes less time than it saves."""


class DecodingBatch:
    """Rows that grow by one token per step. Use it under `torch.inference_mode`, with the model in evaluation mode."""

    def __init__(self, model: PreTrainedModel, compact: CompactDecoder | None = None, large: bool = False) -> None:
        """The compact decoder of a `large` model reads the prompts too."""
        self._model, self._compact, self._large = model, compact, large
        self._device = model.device
        # Of a finished row that waits to leave; absolute positions end here, and what it computes is not used.
        self._last_position = (_context(model) or 2**62) - 1
        self._cache: Any = build_cache(model.config)
        accepted = inspect.signature(model.forward).parameters
        takes_anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values())
        self._pass_positions = "position_ids" in accepted or takes_anything
        names = ("cache", "cache_params", "past_key_values")  # the first since transformers 5.24, the others before
        self._cache_name = next((name for name in names if name in accepted), names[-1])
        self._keep_logits = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._grouped: GroupedCache | None = None
        self._positions = torch.empty(0, 1, dtype=torch.long)
        self._mask: Tensor | None = None

    def prefill(self, prompts: Prompts, repeats: Sequence[int]) -> Float[Tensor, "rows vocab"]:
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

    def _prefill_shared(self, prompts: Prompts) -> int:
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
    def step_together(cls, batches: Sequence[Self], token_ids: Sequence[Tensor]) -> Sequence[Tensor]:
        """Append a token to every row of each batch: its next logits [rows, vocab]. Compact ones share one pass."""
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
"""Rows enter a batch under way once this share of its places is free: small prefills and many small waves are slow."""
LEAVE_ABOVE = 0.2
"""Finished rows leave once they are this share of their wave, because leaving may copy the cache and compile kernels
for a new size."""
LEAVE_LARGE_ABOVE = 0.03
"""The same for the compact decoder of a large model, where leaving needs no copy and each product costs more."""


@dataclass(frozen=True)
class DecodingJob:
    model: PreTrainedModel
    compact: CompactDecoder | None
    large: bool  # whether `compact` is of a large model
    prompts: Prompts
    drafts: Drafts
    params: SamplingParams
    rule: StopRule
    seed: int


class Wave:
    """Rows that entered the batch together, so all have the same number of tokens after their prompt."""

    def __init__(self, job: DecodingJob, rows: Int[np.ndarray, " rows"]) -> None:
        """Prefill the prompts of the drafts `rows`, of which those of one prompt must be neighbours."""
        drafts = job.drafts
        prompts, samples = drafts.prompt[rows].tolist(), drafts.sample[rows].tolist()
        counts = Counter(prompts)
        self.batch = DecodingBatch(job.model, job.compact, job.large)
        self._job, self._rows, self._step = job, rows, 0
        self._slots = np.arange(len(rows))  # indices of `rows` that are still in the batch
        self._noise = RowNoise(job.seed, list(zip(prompts, samples, strict=True)))
        self.logits = self.batch.prefill([job.prompts[prompt] for prompt in counts], list(counts.values()))
        self.tokens = torch.empty(0, dtype=torch.long)  # the last token of each row, once one is drawn
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
    """Complete the drafts `queue`, at most `max_rows` (0: all) at a time. The next wave enters once there is room for
    it, or, without a compact decoder, once the one before it has ended.
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
        job.drafts.tell()
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


COMPACT_FROM_TOKENS = 32  # completion length from which copying the weights of a large model saves time
SMALL_MODEL = 20_000_000  # number of parameters below which the cost of the copy does not matter


class NativeSampler(Sampler):
    """A `Sampler` that decodes with the learner's own weights, in this process.

    It follows later updates of `learner.model` at once. For long completions of a Llama-shaped model on a CPU it packs
    a copy of the weights (`CompactDecoder`), kept until they change or the next training pass begins; then others enter
    as completions end, else a batch ends before the next begins. `max_rows` bounds the completions decoded together (0:
    all). A completion depends on the weights, its prompt, the parameters, the seed and its place (prompt index, sample
    index), and on the rest of the batch only through rounding.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        model: PreTrainedModel | None = None,
        *,
        max_rows: int = 0,
        autocast: Autocast = "auto",
    ) -> None:
        self.tokenizer, self._model, self._max_rows = tokenizer, model, max_rows
        self._autocast: Autocast = autocast

    @classmethod
    def from_folder(cls, path: str, *, device: str = "auto", max_rows: int = 0, autocast: Autocast = "auto") -> Self:
        """A sampler of a model folder or hub name. Raises InputError like `load_tokenizer` and `load_policy`."""
        tokenizer, model = load_tokenizer(path), to_sample(load_policy(path), resolve_device(device), autocast)
        if model.device.type == "cpu":
            keep_freed_memory()
            use_fast_linear(model)
        return cls(tokenizer, model, max_rows=max_rows, autocast=autocast)

    @property
    def model(self) -> PreTrainedModel:
        if self._model is None:
            raise RuntimeError("no model to sample from: pass one, or call sync_weights first")
        return self._model

    def room(self, max_tokens: int) -> int | None:
        """Most tokens that a prompt may have if `max_tokens` must fit after it; see `prompt_room`."""
        return prompt_room(_context(self.model), max_tokens)

    def sync_weights(self, learner: PolicyLearner) -> None:
        """Sample from `learner.model` from now on. Raises TypeError if it is not a Hugging Face model in this
        process."""
        model = getattr(learner, "model", None)
        if not isinstance(model, PreTrainedModel):
            raise TypeError(f"the native sampler needs a learner with a `model` in this process, not {learner!r}")
        self._model = model

    def sample(
        self, prompts: Prompts, n: int, params: SamplingParams, seed: int, share: range | None = None
    ) -> Samples:
        """Draw `n` completions for each prompt (token ids), or for those with numbers in `share`, as in `Sampler`.

        A completion ends after a stop token or the token that completed a stop string, or is cut at `max_tokens` or at
        the end of the context. Raises InputError for a prompt that is empty or leaves no room in the context, and
        FloatingPointError for a model without finite logits.
        """
        model, limits = self.model, self._limits(prompts, params.max_tokens)
        generation = getattr(model, "generation_config", None)
        rule = StopRule(self.tokenizer, params, end_of_sequence_ids(generation, self.tokenizer))
        drafts = Drafts(limits, n, range(len(prompts)) if share is None else share)
        with _inference(model, self._autocast):
            large = model.num_parameters() >= SMALL_MODEL
            pays = params.max_tokens >= COMPACT_FROM_TOKENS or not large
            dtype = torch.bfloat16 if in_bfloat16(self._autocast, model.device) else torch.float32
            compact = compact_decoder(model, dtype) if pays else None
            job = DecodingJob(model, compact, large and compact is not None, prompts, drafts, params, rule, seed)
            for queue in self._queues(drafts.prompt, prompts):
                complete(queue, job, self._max_rows)
        return drafts.samples(rule, prompts)

    def next_token_logits(self, prompts: Prompts) -> Float[Tensor, "P V"]:
        """Logits, float32 on the CPU, of the token that would follow each prompt. Raises errors like `sample`."""
        model, rows = self.model, {}
        self._limits(prompts, 1)
        with _inference(model, self._autocast):
            for queue in self._queues(np.arange(len(prompts)), prompts):
                size = self._max_rows or len(queue)
                for some in np.split(queue, range(size, len(queue), size)):
                    logits = DecodingBatch(model).prefill([prompts[prompt] for prompt in some], [1] * len(some))
                    rows.update(zip(some.tolist(), logits.float().cpu(), strict=True))
        return torch.stack([rows[index] for index in range(len(prompts))])

    def _limits(self, prompts: Prompts, max_tokens: int) -> list[int]:
        context = _context(self.model)
        full = (
            f"the model's context is {context}, so nothing can follow it. "
            "Shorten or drop the prompt, or choose a model with a longer context"
        )
        return completion_limits(prompts, max_tokens, context, full)

    def _queues(self, prompt_of: Int[np.ndarray, " B"], prompts: Prompts) -> list[Int[np.ndarray, " rows"]]:
        """Completions that may share a batch, by length of their prompts, so that there is little padding."""
        lengths = np.array([len(prompt) for prompt in prompts], dtype=np.int64)[prompt_of]
        ordered = np.argsort(lengths, kind="stable")
        if tolerates_padding(self.model.config):
            return [ordered]
        return np.split(ordered, np.flatnonzero(np.diff(lengths[ordered])) + 1)


def to_sample(model: PreTrainedModel, device: torch.device, autocast: Autocast) -> PreTrainedModel:
    """Move a model that is not trained to a device. On a GPU that computes in bfloat16, its linear layers are held in
    bfloat16."""
    model.requires_grad_(False)
    if device.type == "cuda" and in_bfloat16(autocast, device):
        halve_frozen(model)
    allow_tf32(device)
    return model.to(device)  # pyright: ignore[reportArgumentType] - transformers wraps torch's signature


def _context(model: PreTrainedModel) -> int | None:
    """Most tokens that a prompt and its completion may have together. None if the model does not say."""
    return getattr(model.config.get_text_config(), "max_position_embeddings", None)


@contextmanager
def _inference(model: PreTrainedModel, autocast: Autocast) -> Iterator[None]:
    training = model.training
    model.eval()
    enabled = in_bfloat16(autocast, model.device)
    bfloat16 = torch.autocast(model.device.type, dtype=torch.bfloat16, enabled=enabled)
    try:
        with torch.inference_mode(), bfloat16:
            yield
    finally:
        model.train(training)
