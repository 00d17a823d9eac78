"""From settings to a sampler."""

import torch
from transformers import AutoConfig, GenerationConfig

from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.engines.local.stops import end_of_sequence_ids
from cooper_rl.engines.vllm.config import VllmConfig
from cooper_rl.engines.vllm.sampler import InferenceEngine, VllmSampler


def build_sampler(model: str, config: VllmConfig) -> VllmSampler:
    """Start an engine with the model of a folder or the hub, or find the server that has been started.

    Raises InputError for a model, a vLLM or a server that does not serve.
    """
    config.check_model(model)
    backend = backend_of(config)
    if config.url is None:
        from cooper_rl.engines.vllm.offline import OfflineEngine  # noqa: PLC0415 - starts vLLM

        engine = OfflineEngine(model, config, backend)
    else:
        from cooper_rl.engines.vllm.remote import RemoteEngine  # noqa: PLC0415

        engine = RemoteEngine(config.url, config, backend)
    return sampler_of(engine, model, config, backend)


def sampler_of(engine: InferenceEngine, model: str, config: VllmConfig, backend: str) -> VllmSampler:
    """A sampler that draws with an engine of this model."""
    tokenizer = load_tokenizer(model)
    end_of_sequence = end_of_sequence_ids(_generation_config(model), tokenizer)
    return VllmSampler(engine, tokenizer, end_of_sequence, config, backend)


def backend_of(config: VllmConfig) -> str:
    """The transfer that `auto` stands for on this machine."""
    if config.transfer != "auto":
        return config.transfer
    if not torch.cuda.is_available():
        return "gloo"
    return "ipc" if config.url is None else "nccl"


def _generation_config(model: str) -> GenerationConfig:
    """What the model itself would have as `generation_config`."""
    try:
        return GenerationConfig.from_pretrained(model)
    except OSError:  # a folder may have none
        return GenerationConfig.from_model_config(AutoConfig.from_pretrained(model, trust_remote_code=False))
