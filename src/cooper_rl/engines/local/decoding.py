"""A batch of rows during decoding: the model, its cache, and the mask and positions that left-padding requires."""

import inspect
import itertools
from collections.abc import Sequence
from typing import Self

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from cooper_rl.engines.kernels.fast_decoder import CompactDecoder, is_buffered
from cooper_rl.engines.kernels.grouped_cache import GroupedCache
from cooper_rl.engines.kernels.kv_cache import build_cache, select_rows

WORTH_SHARING = 64
"""Tokens saved from which a separate pass over the tokens that all prompts share takes less time than it saves."""


class DecodingBatch:
    """Rows that grow by one token per step. Use it under `torch.inference_mode`, with the model in evaluation mode."""

    def __init__(
        self, model: PreTrainedModel, compact: CompactDecoder | None = None, *, compact_prefill: bool = False
    ) -> None:
        """With `compact_prefill`, the compact decoder reads the prompts too. That pays for large models."""
        self._model = model
        self._compact_prefill = compact_prefill
        self._compact = compact
        self._device = model.device
        self._cache = build_cache(model.config)
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
        if self._compact is not None and is_buffered(self._cache):
            self._grouped = GroupedCache(self._cache, self._mask, copies)
            self._cache = build_cache(self._model.config)  # so that prompts without rows can be freed
            self._positions = self._positions.index_select(0, copies)
        else:
            self.keep(copies)
        return logits.index_select(0, copies)

    def _prefill_shared(self, prompts: Sequence[Sequence[int]]) -> int:
        """Run the tokens with which all prompts begin once, if that pays. Returns how many are in the cache now."""
        if not self._compact_prefill:
            return 0
        shortest = min(map(len, prompts)) - 1  # one token of each prompt must be left to give logits
        alike = itertools.takewhile(lambda column: len(set(column)) == 1, zip(*prompts, strict=False))
        shared = min(shortest, sum(1 for _ in alike))
        if (len(prompts) - 1) * shared < WORTH_SHARING:
            return 0
        self._forward(torch.tensor([prompts[0][:shared]]), torch.arange(shared)[None])
        select_rows(self._cache, torch.zeros(len(prompts), dtype=torch.long))
        return shared

    @property
    def can_be_joined(self) -> bool:
        """Whether `step_together` can advance this batch with others in one pass."""
        return self._grouped is not None

    @classmethod
    def step_together(
        cls, batches: Sequence[Self], token_ids: Sequence[Int[Tensor, " rows"]]
    ) -> Sequence[Float[Tensor, "rows vocab"]]:
        """Append one token to every row of several batches of one model. Returns each one's logits of the next token.

        Batches that can be joined take one pass together.
        """
        caches = [batch._grouped for batch in batches if batch._grouped is not None]
        compact = batches[0]._compact if batches else None
        if compact is None or len(caches) < len(batches):
            return [batch._step(tokens) for batch, tokens in zip(batches, token_ids, strict=True)]
        for batch in batches:
            batch._positions = batch._positions + 1
        positions = torch.cat([batch._positions for batch in batches])
        return compact.step(torch.cat(list(token_ids)), positions, caches).split([len(cache) for cache in caches])

    def _step(self, token_ids: Int[Tensor, " rows"]) -> Float[Tensor, "rows vocab"]:
        self._positions = self._positions + 1
        if self._mask is not None:
            self._mask = torch.cat([self._mask, self._mask.new_ones(len(token_ids), 1)], dim=-1)
        return self._forward(token_ids[:, None], self._positions)

    def keep(self, rows: Int[Tensor, " kept"]) -> None:
        """Continue with these rows only, in this order."""
        self._positions = self._positions.index_select(0, rows)
        if self._grouped is not None:
            self._grouped.keep(rows)
            return
        select_rows(self._cache, rows)
        if self._mask is not None:
            self._mask = self._mask.index_select(0, rows)

    def _forward(self, token_ids: Tensor, positions: Tensor) -> Tensor:
        if self._compact is not None and self._compact_prefill:
            return self._compact.prefill(token_ids, positions, self._mask, self._cache)
        arguments = {self._cache_name: self._cache, **self._keep_logits}
        if self._pass_positions:
            arguments["position_ids"] = positions
        output = self._model(input_ids=token_ids, attention_mask=self._mask, use_cache=True, **arguments)
        return output.logits[:, -1]
