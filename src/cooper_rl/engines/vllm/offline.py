"""A vLLM engine in this process, or in the actor's that makes one: vLLM's offline class, `LLM`."""

# vLLM has an environment of its own, where types are not checked.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import os
from typing import Any

# One process an engine: what starts another one outlives a parent that is killed.
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")

import torch
from vllm import LLM, SamplingParams
from vllm.config import WeightTransferConfig

from cooper_rl.engines.vllm.config import VllmConfig
from cooper_rl.engines.vllm.requests import Drawn, Request
from cooper_rl.engines.vllm.transfer import EXTENSION

GIB = 2**30


class OfflineEngine:
    """An engine that reads its first weights from a model folder or the hub, and takes others (`Receiver`).

    It keeps nothing that a push of weights does not bring back, so that it may be killed and started again.
    """

    elsewhere = False
    restarts = 0

    def __init__(self, model: str, config: VllmConfig, backend: str = "gloo"):
        on_cpu = not torch.cuda.is_available()
        kv_cache_gib = config.kv_cache_gib or (1.0 if on_cpu else None)
        set_num_threads = torch.set_num_threads
        self._llm = LLM(
            model,
            tensor_parallel_size=config.tensor_parallel,
            # Under Ray vLLM would ask Ray for devices, beside those that this process has.
            distributed_executor_backend="mp" if config.tensor_parallel > 1 else None,
            dtype=engine_dtype(config),
            max_num_seqs=config.max_num_seqs,
            max_model_len=config.max_model_len,
            gpu_memory_utilization=config.gpu_memory_utilization,
            kv_cache_memory_bytes=int(kv_cache_gib * GIB) if kv_cache_gib else None,
            enforce_eager=config.enforce_eager,
            enable_prefix_caching=config.prefix_caching,
            # Where a prompt is computed in two parts, vLLM sets a request's generator back, and a CPU's cannot be.
            enable_chunked_prefill=False if on_cpu else None,
            generation_config="vllm",
            logprobs_mode="processed_logprobs",
            trust_remote_code=False,
            disable_log_stats=True,
            weight_transfer_config=WeightTransferConfig(backend=backend),
            worker_extension_cls=EXTENSION,
        )
        torch.set_num_threads = set_num_threads  # on a CPU vLLM replaces it by a function that does nothing
        self.context: int = self._llm.model_config.max_model_len
        """Tokens that a prompt and its completion may have together."""
        self.dtype: torch.dtype = self._llm.model_config.dtype
        self.workers = config.tensor_parallel

    def generate(self, requests: list[Request]) -> list[Drawn]:
        """Draw every completion; the order is that of the requests."""
        prompts: Any = [{"prompt_token_ids": request.prompt} for request in requests]
        params = [SamplingParams(**request.params, flat_logprobs=True) for request in requests]
        found = [one.outputs[0] for one in self._llm.generate(prompts, params, use_tqdm=False)]
        return [
            Drawn(
                token_ids=list(one.token_ids),
                logprobs=one.logprobs.logprobs,  # pyright: ignore - flat, with one number a token
                finish_reason=one.finish_reason,
                versions=[span.version for span in one.weight_versions or ()],
            )
            for one in found
        ]

    def wait_until_back(self) -> None:
        """It is here, as this process is."""

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        """See `Receiver`."""
        self._llm.init_weight_transfer_engine({"init_info": init_info})

    def start_weight_update(self) -> None:
        """See `Receiver`."""
        self._llm.start_weight_update()

    def update_weights(self, update_info: Any) -> None:
        """See `Receiver`."""
        self._llm.update_weights({"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """See `Receiver`."""
        self._llm.finish_weight_update(weight_version)

    def update_weight_version(self, new_version: str) -> None:
        """See `Receiver`."""
        self._llm.update_weight_version(new_version)

    def weight_versions(self) -> list[str]:
        """See `Receiver`."""
        return [self._llm.get_weight_version()]

    def reset_prefix_cache(self) -> None:
        """See `Receiver`."""
        if not self._llm.reset_prefix_cache():
            raise RuntimeError("vLLM could not empty its prefix cache: a completion is still being drawn")


def engine_dtype(config: VllmConfig) -> str:
    """The precision that `auto` stands for on this machine."""
    if config.dtype != "auto":
        return config.dtype
    return "bfloat16" if torch.cuda.is_available() else "float32"
