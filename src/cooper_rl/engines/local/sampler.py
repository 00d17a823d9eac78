"""The native sampler: completions drawn in this process from any Hugging Face causal language model."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cooper_rl.data.prompts import prompt_room
from cooper_rl.engines.base import PolicyLearner
from cooper_rl.engines.config import SamplingParams
from cooper_rl.engines.cpu import compact_decoder, use_fast_linear
from cooper_rl.engines.kv_cache import tolerates_padding
from cooper_rl.engines.local.decoding import DecodingBatch, DecodingJob, Drafts, complete
from cooper_rl.engines.local.device import keep_freed_memory, resolve_device
from cooper_rl.engines.local.models import load_policy, load_tokenizer
from cooper_rl.engines.local.sampling import StopRule, end_of_sequence_ids
from cooper_rl.errors import InputError
from cooper_rl.rollouts import Samples

COMPACT_FROM_TOKENS = 32
"""Completion length from which copying the weights of a large model saves more time than it costs."""
SMALL_MODEL = 20_000_000
"""Number of parameters below which the cost of the copy does not matter."""


class NativeSampler:
    """A `Sampler` that decodes with the learner's own weights, in this process.

    `sync_weights` keeps a reference to `learner.model`, so the sampler follows later updates at once. For long
    completions of a Llama-shaped model on a CPU it makes a packed copy of the weights (`CompactDecoder`), which is kept
    until the weights change or the learner's next training pass begins. `max_rows` bounds the number of completions
    decoded together (0: all). With the packed copy, others enter as completions end; without it, a batch ends before
    the next begins. A completion depends on the weights, its prompt, the parameters, the seed and its own place (prompt
    index, sample index). The rest of the batch can affect it only through rounding.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        model: PreTrainedModel | None = None,
        *,
        max_rows: int = 0,
        autocast: Literal["off", "bfloat16"] = "off",
    ) -> None:
        self.tokenizer = tokenizer
        self._model = model
        self._max_rows = max_rows
        self._autocast = autocast

    @classmethod
    def from_folder(
        cls, path: str, *, device: str = "auto", max_rows: int = 0, autocast: Literal["off", "bfloat16"] = "off"
    ) -> Self:
        """A sampler of a model folder or hub name. Raises InputError like `load_tokenizer` and `load_policy`."""
        tokenizer, model = load_tokenizer(path), load_policy(path)
        model.to(resolve_device(device))  # pyright: ignore[reportArgumentType] - transformers wraps torch's signature
        if model.device.type == "cpu":
            keep_freed_memory()
            use_fast_linear(model)
        return cls(tokenizer, model, max_rows=max_rows, autocast=autocast)

    @property
    def model(self) -> PreTrainedModel:
        """The model that is sampled. Raises RuntimeError before there is one."""
        if self._model is None:
            raise RuntimeError("no model to sample from: pass one, or call sync_weights first")
        return self._model

    def room(self, max_tokens: int) -> int | None:
        """Most tokens that a prompt may have if `max_tokens` must fit after it; see `prompt_room`."""
        return prompt_room(_context(self.model), max_tokens)

    def sync_weights(self, learner: PolicyLearner) -> None:
        """Sample from `learner.model` from now on. Raises TypeError if it is no Hugging Face model in this process."""
        model = getattr(learner, "model", None)
        if not isinstance(model, PreTrainedModel):
            raise TypeError(f"the native sampler needs a learner with a `model` in this process, not {learner!r}")
        self.sample_from(model)

    def sample_from(self, model: PreTrainedModel) -> None:
        """Sample from this model from now on, without a copy."""
        self._model = model

    def sample(
        self, prompts: Sequence[Sequence[int]], n: int, params: SamplingParams, seed: int, share: range | None = None
    ) -> Samples:
        """Draw `n` completions for each prompt (token ids), or for those with numbers in `share`, as in `Sampler`.

        A completion ends after a stop token or the token that completed a stop string, or is cut at `max_tokens` or
        at the end of the model's context. Raises InputError, before any forward pass, for a prompt that is empty or
        leaves no room in the context, and FloatingPointError for a model without finite logits.
        """
        model = self.model
        limits = [completion_limit(model, index, prompt, params) for index, prompt in enumerate(prompts)]
        generation = getattr(model, "generation_config", None)
        rule = StopRule(self.tokenizer, params, end_of_sequence_ids(generation, self.tokenizer))
        drafts = Drafts(limits, n, range(len(prompts)) if share is None else share)
        with _inference(model, self._autocast):
            large = model.num_parameters() >= SMALL_MODEL
            pays = params.max_tokens >= COMPACT_FROM_TOKENS or not large
            dtype = torch.bfloat16 if self._autocast == "bfloat16" else torch.float32
            compact = compact_decoder(model, dtype) if pays else None
            job = DecodingJob(model, compact, large and compact is not None, prompts, drafts, params, rule, seed)
            for queue in self._queues(drafts.prompt, prompts):
                complete(queue, job, self._max_rows)
        return drafts.samples(rule)

    def next_token_logits(self, prompts: Sequence[Sequence[int]]) -> Float[Tensor, "P V"]:
        """Logits, float32 on the CPU, of the token that would follow each prompt. Raises errors like `sample`."""
        model = self.model
        rows: dict[int, Tensor] = {}
        for index, prompt in enumerate(prompts):
            completion_limit(model, index, prompt, SamplingParams(max_tokens=1))
        with _inference(model, self._autocast):
            for queue in self._queues(np.arange(len(prompts)), prompts):
                size = self._max_rows or len(queue)
                for some in np.split(queue, range(size, len(queue), size)):
                    logits = DecodingBatch(model).prefill([prompts[prompt] for prompt in some], [1] * len(some))
                    rows.update(zip(some.tolist(), logits.float().cpu(), strict=True))
        return torch.stack([rows[index] for index in range(len(prompts))])

    def _queues(
        self, prompt_of: Int[np.ndarray, " B"], prompts: Sequence[Sequence[int]]
    ) -> list[Int[np.ndarray, " rows"]]:
        """Completions that may share a batch, by length of their prompts, so that there is little padding."""
        lengths = np.array([len(prompt) for prompt in prompts], dtype=np.int64)[prompt_of]
        ordered = np.argsort(lengths, kind="stable")
        if tolerates_padding(self.model.config):
            return [ordered]
        return np.split(ordered, np.flatnonzero(np.diff(lengths[ordered])) + 1)


def completion_limit(model: PreTrainedModel, index: int, prompt: Sequence[int], params: SamplingParams) -> int:
    """Most tokens that may follow a prompt: `max_tokens`, or the rest of the context if that is less.

    Raises InputError, naming the prompt's `index` and length, if it is empty or fills the context.
    """
    if len(prompt) == 0:
        raise InputError(f"prompt {index} is empty: the model needs at least one token to continue from")
    context = _context(model)
    if context is None:
        return params.max_tokens
    if len(prompt) >= context:
        raise InputError(
            f"prompt {index} has {len(prompt)} tokens and the model's context is {context}, so nothing can follow it. "
            "Shorten or drop the prompt, or choose a model with a longer context"
        )
    return min(params.max_tokens, context - len(prompt))


def _context(model: PreTrainedModel) -> int | None:
    """Most tokens that a prompt and its completion may have together. None if the model does not say."""
    return getattr(model.config.get_text_config(), "max_position_embeddings", None)


@contextmanager
def _inference(model: PreTrainedModel, autocast: str) -> Iterator[None]:
    """Evaluation mode, no autograd, and bfloat16 if asked for. The model's mode is restored afterwards."""
    training = model.training
    model.eval()
    try:
        with (
            torch.inference_mode(),
            torch.autocast(model.device.type, dtype=torch.bfloat16, enabled=autocast == "bfloat16"),
        ):
            yield
    finally:
        model.train(training)
