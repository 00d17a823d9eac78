"""From settings to a sampler."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from transformers import AutoConfig, GenerationConfig

from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.engines.local.sampling import end_of_sequence_ids
from cooper_rl.engines.model_folder import local_folder
from cooper_rl.engines.vllm.config import VllmConfig
from cooper_rl.engines.vllm.handover import Handover, HandoverFromHere
from cooper_rl.engines.vllm.sampler import InferenceEngine, VllmSampler
from cooper_rl.errors import InputError

if TYPE_CHECKING:
    from cooper_rl.engines.vllm.offline import OfflineEngine
    from cooper_rl.engines.vllm.remote import RemoteEngine


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
        engine = server(model, config, backend)
    return sampler_of(engine, model, config, backend)


def sampler_of(engine: "OfflineEngine | RemoteEngine", model: str, config: VllmConfig, backend: str) -> VllmSampler:
    """A sampler that draws with an engine of this model, for learners in this process."""
    return sampler_with(engine, model, HandoverFromHere(engine, engine.dtype, config, backend))


def sampler_with(engine: InferenceEngine, model: str, handover: Handover) -> VllmSampler:
    """A sampler that draws with an engine of this model, which gets its weights over `handover`."""
    tokenizer = load_tokenizer(model)
    return VllmSampler(engine, tokenizer, end_of_sequence_ids(_generation_config(model), tokenizer), handover)


def server(model: str, config: VllmConfig, backend: str) -> "RemoteEngine":
    """The server at `config.url`. Raises InputError for one that does not serve this model."""
    from cooper_rl.engines.vllm.remote import RemoteEngine  # noqa: PLC0415

    engine = RemoteEngine(config, backend)
    _check_served(engine, model)
    return engine


def _check_served(engine: "RemoteEngine", model: str) -> None:
    """Weights of another shape would fail at the first push, and other tokens would not fail at all."""
    if local_folder(model) is not None and Path(engine.model).is_dir():
        own, served = (load_tokenizer(path).get_vocab() for path in (model, engine.model))
        if own != served:
            raise InputError(f"url: {engine.url} serves {engine.model}, whose tokens are others than those of {model}")
    elif local_folder(model) is None and engine.model != model:
        raise InputError(f"url: {engine.url} serves {engine.model}, and this run's policy is {model}")


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
