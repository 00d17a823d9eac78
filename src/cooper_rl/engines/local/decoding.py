"""A batch of rows during decoding: the model, its cache, and the mask and positions that left-padding requires."""

import inspect
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from cooper_rl.engines.kernels.fast_decoder import CompactDecoder, is_buffered
from cooper_rl.engines.kernels.grouped_cache import GroupedCache
from cooper_rl.engines.kernels.kv_cache import build_cache, select_rows


class DecodingBatch:
    """Rows that grow by one token per step. Use it under `torch.inference_mode`, with the model in evaluation mode."""

    def __init__(self, model: PreTrainedModel, compact: CompactDecoder | None = None) -> None:
        self._model = model
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
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        width = int(lengths.max())
        tokens = torch.zeros(len(prompts), width, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            tokens[row, width - len(prompt) :] = torch.tensor(prompt)
        columns = torch.arange(width)
        positions = (columns - (width - lengths[:, None])).to(self._device)
        # Without padding no mask is needed, and attention can take its fast causal path.
        self._mask = (positions >= 0).long() if bool((lengths < width).any()) else None
        positions = positions.clamp(min=0)
        logits = self._forward(tokens.to(self._device), positions)
        self._positions = positions[:, -1:]
        copies = torch.repeat_interleave(torch.arange(len(prompts)), torch.tensor(repeats)).to(self._device)
        if self._compact is not None and is_buffered(self._cache):
            self._grouped = GroupedCache(self._cache, self._mask, copies)
            self._positions = self._positions.index_select(0, copies)
        else:
            self.keep(copies)
        return logits.index_select(0, copies)

    def step(self, token_ids: Int[Tensor, " rows"]) -> Float[Tensor, "rows vocab"]:
        """Append one token to every row and return the logits of the next token."""
        self._positions = self._positions + 1
        if self._compact is not None and self._grouped is not None:
            return self._compact.step(token_ids, self._positions, self._grouped)
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
        arguments = {self._cache_name: self._cache, **self._keep_logits}
        if self._pass_positions:
            arguments["position_ids"] = positions
        output = self._model(input_ids=token_ids, attention_mask=self._mask, use_cache=True, **arguments)
        return output.logits[:, -1]
