"""The sampler in one process of the policy: a copy of the whole model, and a share of the prompts."""

from collections.abc import Iterable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from transformers import PreTrainedModel

from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.fsdp2.sharding import rank_device
from cooper_rl.engines.kernels.linear import use_fast_linear
from cooper_rl.engines.local.models import load_policy, load_tokenizer
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.engines.sampling import SamplingParams
from cooper_rl.rollouts import Samples


class LocalSampler:
    """Draws what the native sampler would draw for its prompts if it had all of them."""

    def __init__(self, config: LearnerConfig, max_rows: int) -> None:
        self._config = config
        self._native = NativeSampler(load_tokenizer(config.model), max_rows=max_rows, autocast=config.autocast)
        self._model: PreTrainedModel | None = None

    @torch.no_grad()
    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Copy the weights, which come one after the other."""
        if self._model is None:
            self._model = load_policy(self._config.model)
            self._model.to(rank_device(self._config.device))  # pyright: ignore[reportArgumentType]
            use_fast_linear(self._model, self._config.cpu_kernels)
            self._native.sample_from(self._model)
        own = dict(self._model.state_dict(keep_vars=True))
        for name, tensor in weights:
            own[name].copy_(tensor)

    def sample(self, prompts: Sequence[Sequence[int]], n: int, params: SamplingParams, seed: int) -> Samples:
        """The completions of this process's prompts, an even run of them."""
        rank, ranks = dist.get_rank(), dist.get_world_size()
        share = range(len(prompts) * rank // ranks, len(prompts) * (rank + 1) // ranks)
        return self._native.sample(prompts, n, params, seed, share)
