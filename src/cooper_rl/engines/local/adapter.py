"""Low-rank adapters (LoRA, by peft) in a model: put in, switched off, and merged into what they adapt.

Adapters stand in the model itself: it stays a plain transformers model, whose projections are peft's layers around the
frozen ones.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import BitsAndBytesConfig, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from cooper_rl.engines.kernels.adapted_linear import merged_weight
from cooper_rl.engines.local.device import resolve_device
from cooper_rl.engines.local.shards import whole
from cooper_rl.engines.lora_config import LoraConfig
from cooper_rl.errors import InputError

logger = logging.getLogger(__name__)

_HEADS = ("score", "classifier")
"""What transformers calls the head of a sequence classifier."""
ADAPTER = "default"
"""Peft's name for the only adapter of a model."""


def check_targets(shape: PreTrainedModel, lora: LoraConfig, source: str) -> None:
    """Before any weight is read: raises InputError and MissingExtraError as `add_adapter`."""
    lora.check()
    target_names(shape, lora, source)


def four_bit(lora: LoraConfig | None, device: str) -> dict[str, Any]:
    """What `from_pretrained` is told to hold frozen weights in 4 bits; nothing where that is not asked for.

    Raises InputError where bitsandbytes does not serve on the device, and MissingExtraError without it.
    """
    if lora is None or not lora.load_in_4bit:
        return {}
    lora.check()
    place = resolve_device(device)
    try:
        from bitsandbytes.nn import Linear4bit  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - optional

        # As in a learner: on some CPUs a layer that has computed without gradient no longer computes one.
        layer = Linear4bit(64, 64, quant_type="nf4").to(place).eval()
        inputs = torch.ones(2, 64, device=place)
        layer(inputs)
        layer(inputs.requires_grad_()).sum().backward()
    except Exception as error:  # whatever the library raises on a device that it was not built for
        reason = str(error).strip().partition("\n")[0]
        raise InputError(
            f"lora.load_in_4bit: bitsandbytes does not serve on {place} ({reason}); set load_in_4bit: false"
        ) from error
    how = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
    return {"quantization_config": how, "device_map": {"": place}}


def add_adapter(model: PreTrainedModel, lora: LoraConfig, source: str) -> None:
    """Put an adapter into a model; it and a reward head are trainable, everything else is frozen.

    Raises InputError for target modules that the model, read from `source`, does not have, and MissingExtraError
    without peft.
    """
    lora.check()
    from peft import LoraConfig as PeftConfig  # noqa: PLC0415 - an extra
    from peft import inject_adapter_in_model  # noqa: PLC0415

    targets = target_names(model, lora, source)
    head = head_modules(model)
    config = PeftConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # pyright: ignore[reportArgumentType] - peft says int, and only divides it
        lora_dropout=lora.dropout,
        use_rslora=lora.rslora,
        target_modules=targets,
        base_model_name_or_path=str(Path(source).resolve()) if Path(source).is_dir() else source,
        task_type="SEQ_CLS" if head else "CAUSAL_LM",
    )
    # The run's own stream of random numbers stays where it is.
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(lora.seed)
        inject_adapter_in_model(config, model)
    config.modules_to_save = sorted(head) or None  # trained as they are: no copy of the head needs to stay
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(".lora_" in name or name.split(".")[0] in head)
        if parameter.requires_grad and parameter.dtype.itemsize < torch.float32.itemsize:
            parameter.data = parameter.data.float()  # beside 4-bit weights peft makes it what they are multiplied in


def target_names(model: PreTrainedModel, lora: LoraConfig, source: str) -> list[str]:
    """The last parts of the names of the layers that get an adapter. Raises InputError as `add_adapter`."""
    output = model.get_output_embeddings()
    found = {
        name.rpartition(".")[2]
        for name, module in model.named_modules()
        if isinstance(module, (nn.Linear, Conv1D)) and module is not output and name.split(".")[0] not in _HEADS
    }
    unknown = sorted(set(lora.target_modules) - found)
    if unknown:
        raise InputError(
            f"lora.target_modules: {source} has no linear layer called {', '.join(unknown)}; it has "
            f"{', '.join(sorted(found))}"
        )
    return sorted(lora.target_modules or found)


@contextmanager
def adapter_off(model: nn.Module) -> Iterator[None]:
    """The model as it was before it had an adapter. Gradients may not be accumulated meanwhile."""
    layers = adapted_layers(model)
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)


def adapted_layers(model: nn.Module) -> list[Any]:
    """Peft's layers."""
    return [module for module in model.modules() if hasattr(module, "base_layer")]


def dropouts(model: nn.Module) -> list[nn.Module]:
    """What drops out in training passes."""
    return [layer.lora_dropout[ADAPTER] for layer in adapted_layers(model)]


def merge_adapter(folder: str, base: PreTrainedModel) -> PreTrainedModel:
    """The base model with a folder's adapter added to its weights. Raises MissingExtraError without peft."""
    LoraConfig().check()
    from peft import PeftModel  # noqa: PLC0415 - an extra

    merged: Any = PeftModel.from_pretrained(base, folder).merge_and_unload()
    merged.requires_grad_(True)
    return merged


def merged_weights(model: PreTrainedModel) -> dict[str, Tensor] | None:
    """The weights with the adapter added, under the names of the model without one; None where it has none."""
    return dict(plain_weights(model)) if adapted_layers(model) else None


@torch.no_grad()
def plain_weights(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Names and whole weights of the model without adapter, one after the other, with the adapter added to them.

    A weight that has two names comes once. Of a sharded model all processes must ask.
    """
    layers = {f"{name}.base_layer": module for name, module in model.named_modules() if hasattr(module, "base_layer")}
    for name, parameter in model.named_parameters():
        layer, _, kind = name.rpartition(".")
        if ".lora_" not in name:
            adds = layer in layers and kind == "weight"
            weight = merged_weight(layers[layer]) if adds else parameter.detach()
            yield name.replace(".base_layer", ""), whole(weight)


def head_modules(model: PreTrainedModel) -> list[str]:
    """The names of a reward model's head, which is trained whole."""
    return [name for name in _HEADS if isinstance(getattr(model, name, None), nn.Module)]
